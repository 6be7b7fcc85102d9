-- Forgets suspensions that are over, where no enrollment shows them to the operator any more.
-- KEYS suspension ends, word ids, lapses, changes, then record and word of each instance
-- ARGV now, log ms, log length, then the instances
local now = tonumber(ARGV[1])
for number = 0, #ARGV - 4 do
  local instance, record, word = ARGV[4 + number], KEYS[5 + number * 2], KEYS[6 + number * 2]
  local ends = redis.call('ZSCORE', KEYS[1], instance)
  if ends and tonumber(ends) <= now then
    local lapse = redis.call('EXISTS', record) == 1 and redis.call('ZSCORE', KEYS[3], instance)
    if lapse and tonumber(lapse) > now then
      -- Looked at again when the record lapses.
      redis.call('ZADD', KEYS[1], lapse, instance)
    else
      redis.call('ZREM', KEYS[1], instance)
      redis.call('HDEL', word, 'until', 'reason')
      if redis.call('EXISTS', word) == 0 then
        redis.call('ZREM', KEYS[2], instance)
      end
      redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[3], '*', 's', instance)
      redis.call('PEXPIRE', KEYS[4], ARGV[2])
    end
  end
end
