-- The last entry of the change log, which is begun where there is none.
-- KEYS changes
-- ARGV log ms
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('XADD', KEYS[1], '*', 'm', '')
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
