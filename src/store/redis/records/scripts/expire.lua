-- Forgets what has expired of a sorted set of ends and the hash that belongs to it, a step of it.
-- KEYS ends, values
-- ARGV now, most
local ended = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, member in ipairs(ended) do
  redis.call('ZREM', KEYS[1], member)
  redis.call('HDEL', KEYS[2], member)
end
return #ended
