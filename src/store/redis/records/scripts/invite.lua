-- Keeps an invite while there is room.
-- KEYS invites, invite times
-- ARGV invite, made at, expires at, most
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then
  return 0
end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local life = math.max(tonumber(ARGV[3]) - tonumber(ARGV[2]), 1000)
for index = 1, 2 do
  if redis.call('PTTL', KEYS[index]) < life then
    redis.call('PEXPIRE', KEYS[index], string.format('%.0f', life))
  end
end
return 1
