-- Counts a live session for an instance. KEYS: its sessions by their ends. ARGV: session, life in milliseconds, most.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local ends = now + tonumber(ARGV[2])
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  return 'there'
elseif redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then
  return 'full'
end
redis.call('ZADD', KEYS[1], ends, ARGV[1])
redis.call('PEXPIRE', KEYS[1], LONGEST)
return 'new'
