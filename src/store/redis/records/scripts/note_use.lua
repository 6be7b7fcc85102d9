-- Counts a use, which keeps the record alive.
-- KEYS record, ids, lapses
-- ARGV instance, sent, at, used ms, index ms
if redis.call('EXISTS', KEYS[1]) == 0 then
  return
end
redis.call('HINCRBY', KEYS[1], 'sent', ARGV[2])
local last = redis.call('HGET', KEYS[1], 'last_used_at')
if last and tonumber(last) >= tonumber(ARGV[3]) then
  return
end
redis.call('HSET', KEYS[1], 'last_used_at', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('ZADD', KEYS[3], string.format('%.0f', tonumber(ARGV[3]) + tonumber(ARGV[4])), ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
redis.call('PEXPIRE', KEYS[3], ARGV[5])
