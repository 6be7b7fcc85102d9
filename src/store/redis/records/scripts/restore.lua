-- Writes back the words about an instance of which nothing is said.
-- KEYS word, word ids, suspension ends, changes
-- ARGV instance, log ms, log length, then fields of the word
if redis.call('EXISTS', KEYS[1]) == 1 then
  return
end
for field = 4, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[field], ARGV[field + 1])
end
redis.call('ZADD', KEYS[2], 0, ARGV[1])
local ends = redis.call('HGET', KEYS[1], 'until')
if ends and ends ~= '' then
  redis.call('ZADD', KEYS[3], ends, ARGV[1])
end
redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[3], '*', 's', ARGV[1])
redis.call('PEXPIRE', KEYS[4], ARGV[2])
