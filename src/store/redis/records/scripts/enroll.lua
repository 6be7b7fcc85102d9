-- Uses up the invite, finds or opens the address's group, writes the record.
-- KEYS record, ids, lapses, groups, group ends, invites, invite times
-- ARGV instance, at, address, fresh group, group ms, unused ms, index ms, invite or '', then fields of the record
local at = tonumber(ARGV[2])
local invite = ARGV[8]
if invite ~= '' then
  local ends = redis.call('ZSCORE', KEYS[6], invite)
  if not ends or tonumber(ends) <= at then
    return false
  end
end
local known = redis.call('ZSCORE', KEYS[5], ARGV[3])
local group = known and at < tonumber(known) and redis.call('HGET', KEYS[4], ARGV[3])
if not group then
  group = ARGV[4]
  redis.call('HSET', KEYS[4], ARGV[3], group)
  redis.call('ZADD', KEYS[5], string.format('%.0f', at + tonumber(ARGV[5])), ARGV[3])
  redis.call('PEXPIRE', KEYS[4], ARGV[5])
  redis.call('PEXPIRE', KEYS[5], ARGV[5])
end
redis.call('HSET', KEYS[1], 'enrolled_at', ARGV[2], 'group', group)
for field = 9, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[field], ARGV[field + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[6])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('ZADD', KEYS[3], string.format('%.0f', at + tonumber(ARGV[6])), ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[7])
redis.call('PEXPIRE', KEYS[3], ARGV[7])
-- Last, for when memory is short nothing is refused once a script has begun to write, as this is allowed to.
if invite ~= '' then
  redis.call('ZREM', KEYS[6], invite)
  redis.call('HDEL', KEYS[7], invite)
end
return group
