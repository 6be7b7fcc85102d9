-- Keeps an outcome, whoever's claim stands there. An outcome that is there stays.
-- KEYS outcome
-- ARGV outcome, kept ms
local present = redis.call('GET', KEYS[1])
if not present or string.sub(present, 1, 1) == '?' then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
