-- Removes entries of the revocation list that are still as they were.
-- KEYS revocations, changes
-- ARGV log ms, log length, then instance, entry
-- Returns the numbers of those removed.
local gone = {}
for number = 0, (#ARGV - 2) / 2 - 1 do
  local instance, entry = ARGV[3 + number * 2], ARGV[4 + number * 2]
  if redis.call('HGET', KEYS[1], instance) == entry then
    redis.call('HDEL', KEYS[1], instance)
    redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', 'f', instance, 'e', entry)
    redis.call('PEXPIRE', KEYS[2], ARGV[1])
    gone[#gone + 1] = number
  end
end
return gone
