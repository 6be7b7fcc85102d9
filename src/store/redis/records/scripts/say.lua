-- Replaces one word of the operator's, or the abuse policy's suspension.
-- KEYS word, word ids, suspension ends, changes
-- ARGV instance, log ms, log length, which word, then its value: none, or `value`, or `until or ''` and `reason`
local which = ARGV[4]
local function tell()
  redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[3], '*', 's', ARGV[1])
  redis.call('PEXPIRE', KEYS[4], ARGV[2])
end
local function suspend(ends, reason)
  redis.call('HSET', KEYS[1], 'until', ends, 'reason', reason)
  if ends == '' then
    redis.call('ZREM', KEYS[3], ARGV[1])
  else
    redis.call('ZADD', KEYS[3], ends, ARGV[1])
  end
end
if which == 'policy' then
  -- It never shortens a longer suspension.
  local present = redis.call('HGET', KEYS[1], 'until')
  local longer = present and (present == '' or (ARGV[5] ~= '' and tonumber(present) >= tonumber(ARGV[5])))
  if longer then
    return
  end
  suspend(ARGV[5], ARGV[6])
elseif which == 'suspension' then
  if ARGV[5] then
    suspend(ARGV[5], ARGV[6])
  else
    redis.call('HDEL', KEYS[1], 'until', 'reason')
    redis.call('ZREM', KEYS[3], ARGV[1])
  end
elseif ARGV[5] then
  redis.call('HSET', KEYS[1], which, ARGV[5])
else
  redis.call('HDEL', KEYS[1], which)
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('ZADD', KEYS[2], 0, ARGV[1])
else
  redis.call('ZREM', KEYS[2], ARGV[1])
end
tell()
