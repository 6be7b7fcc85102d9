-- Writes entries of the revocation list that are still as expected, and erases the records with them.
-- KEYS revocations, changes, ids, lapses, word ids, suspension ends, then record and word of each instance
-- ARGV log ms, log length, erase or '', then instance, expected or '', new
-- Returns the numbers and values of those that are not as expected.
--
-- A key is revoked although memory is short. Then only what frees some is allowed, unless the script has begun to write:
-- an end is a beginning.
redis.call('PEXPIRE', KEYS[2], ARGV[1])
local changed = {}
for number = 0, (#ARGV - 3) / 3 - 1 do
  local at = 4 + number * 3
  local instance, new = ARGV[at], ARGV[at + 2]
  local present = redis.call('HGET', KEYS[1], instance) or ''
  if present ~= ARGV[at + 1] then
    changed[#changed + 1] = { tostring(number), present }
  else
    if present ~= new then
      redis.call('HSET', KEYS[1], instance, new)
      redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', 'r', instance, 'e', new)
      redis.call('PEXPIRE', KEYS[2], ARGV[1])
    end
    if ARGV[3] ~= '' then
      redis.call('DEL', KEYS[7 + number * 2], KEYS[8 + number * 2])
      for index = 3, 6 do
        redis.call('ZREM', KEYS[index], instance)
      end
      redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', 's', instance)
    end
  end
end
return changed
