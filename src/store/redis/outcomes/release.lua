-- Takes a claim back, if it is still the same.
-- KEYS outcome
-- ARGV claim
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
