-- Takes tokens of one budget: a GCRA that grants several at a time, as many as are wanted and there.
-- The key holds the moment, in microseconds of the server's clock, at which the budget is full again.
-- KEYS budget
-- ARGV pushes a minute, wanted, charge: tokens spent already
-- Returns granted, left, microseconds until there is another one
local minute = 60000000
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local emission = minute / tonumber(ARGV[1])
local full = tonumber(redis.call('GET', KEYS[1]) or now)
-- A clock that was set back must not hold anybody up longer than an empty budget does.
full = math.max(now, math.min(full, now + minute))
full = math.min(full + tonumber(ARGV[3]) * emission, now + minute)
local left = math.floor((now + minute - full) / emission + 0.000001)
local granted = math.min(left, tonumber(ARGV[2]))
full = full + granted * emission
if full > now then
  redis.call('SET', KEYS[1], string.format('%.1f', full), 'PX', math.ceil((full - now) / 1000))
end
local wait = math.max(0, math.ceil(full + emission - now - minute))
return { granted, left - granted, left > granted and 0 or wait }
