-- The epoch of the words, begun where there is none.
-- KEYS epoch
-- ARGV a fresh one
redis.call('SETNX', KEYS[1], ARGV[1])
return redis.call('GET', KEYS[1])
