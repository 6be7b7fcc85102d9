-- Takes one of each of several budgets, or of none: GCRAs whose keys hold the moment, in microseconds of the server's clock,
-- at which the budget is full again.
-- KEYS a host's budgets for a minute and a day, then its site's, if it has one
-- ARGV for each budget: how many, in how many seconds
-- Returns microseconds until the host's have one, and the site's; zero twice: taken
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local fulls, waits = {}, { 0, 0 }
for index = 1, #KEYS do
  local interval = tonumber(ARGV[index * 2]) * 1000000
  -- A clock that was set back must not hold anybody up longer than an empty budget does.
  local full = math.min(tonumber(redis.call('GET', KEYS[index]) or now), now + interval)
  full = math.max(now, full) + interval / tonumber(ARGV[index * 2 - 1])
  local whose = index <= 2 and 1 or 2
  waits[whose] = math.max(waits[whose], math.ceil(full - now - interval))
  fulls[index] = full
end
if waits[1] == 0 and waits[2] == 0 then
  for index, full in ipairs(fulls) do
    redis.call('SET', KEYS[index], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000))
  end
end
return waits
