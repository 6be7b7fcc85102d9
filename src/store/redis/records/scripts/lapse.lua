-- Removes records that have lapsed by now.
-- KEYS ids, lapses, then the records
-- ARGV now, then the instances
local now, gone = tonumber(ARGV[1]), 0
for index = 3, #KEYS do
  local instance = ARGV[index - 1]
  local lapse = redis.call('ZSCORE', KEYS[2], instance)
  if lapse and tonumber(lapse) <= now then
    redis.call('DEL', KEYS[index])
    redis.call('ZREM', KEYS[1], instance)
    redis.call('ZREM', KEYS[2], instance)
    gone = gone + 1
  end
end
return gone
