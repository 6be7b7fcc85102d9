-- Notes that a replica is alive and counts all that are. It fails when memory is short, which tells the operator.
-- KEYS replicas
-- ARGV replica, alive ms
-- Returns how many are alive, the server's time in milliseconds
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return { redis.call('ZCARD', KEYS[1]), now }
