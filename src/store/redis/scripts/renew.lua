-- One second of a replica's life. KEYS: replicas by the moment they were heard of, what each lets wait.
-- ARGV: the replica, what it lets wait, after how long one is dead, and forgotten, in milliseconds.
--
-- A lease is renewed although memory is short, else nobody would get what waits and free it. Then only what frees some is
-- allowed, unless the script has begun to write: an end is a beginning.
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
for _, key in ipairs(KEYS) do
  redis.call('PEXPIRE', key, ARGV[4])
end
local forgotten = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[4])
if #forgotten > 0 then
  redis.call('ZREM', KEYS[1], unpack(forgotten))
end
local dead, waiting = {}, {}
local replicas = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
for at = 1, #replicas, 2 do
  local replica, age = replicas[at], now - replicas[at + 1]
  if age >= tonumber(ARGV[3]) then
    dead[#dead + 1] = replica
    dead[#dead + 1] = string.format('%.0f', age)
    redis.call('HDEL', KEYS[2], replica)
  elseif replica ~= ARGV[1] then
    waiting[#waiting + 1] = redis.call('HGET', KEYS[2], replica) or ''
  end
end
-- Heard on the replica's own channel, this proves that wake-ups arrive.
redis.call('PUBLISH', CHANNEL .. ARGV[1], 'ping')
return { dead, waiting }
