-- Records and operator's words, a pair of keys for each instance.
local found = {}
for pair = 1, #KEYS, 2 do
  found[#found + 1] = { redis.call('HGETALL', KEYS[pair]), redis.call('HGETALL', KEYS[pair + 1]) }
end
return found
