-- Counts a live session for an instance. KEYS: its sessions by their ends. ARGV: session, life in milliseconds, most.
-- What needs memory comes first: when that is short, it is refused only as long as the script has not begun to write.
local listed = redis.call('ZSCORE', KEYS[1], ARGV[1])
if listed and tonumber(listed) > now then
  return 'there'
end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) > tonumber(ARGV[3]) then
  redis.call('ZREM', KEYS[1], ARGV[1])
  return 'full'
end
redis.call('PEXPIRE', KEYS[1], LONGEST)
return 'new'
