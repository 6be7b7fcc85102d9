-- What the scripts of sessions share. It follows the constants that sessions/scripts.rs writes: AWAY_AFTER, GRACE,
-- BOTH_LEFT and MINUTE in milliseconds, RETIRED, ENTRY_BYTES and CHANNEL.
--
-- KEYS: the record (a hash), what waits for slot a, what waits for slot b (lists).
-- A waiting entry is "m<generation>:<content>", or "l<generation>:" for a new page load of the sender. The first one's
-- seq is the slot's base + 1, the last one's its top.

local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)

local function other(slot)
  return slot == 'a' and 'b' or 'a'
end

local function mail(slot)
  return slot == 'a' and KEYS[2] or KEYS[3]
end

local function number(value)
  return tonumber(value or 0)
end

-- The whole record, if the session lives.
local function all()
  local flat = redis.call('HGETALL', KEYS[1])
  local record = {}
  for at = 1, #flat, 2 do
    record[flat[at]] = flat[at + 1]
  end
  if not record.ends or now >= tonumber(record.ends) then
    return nil, record
  end
  return record
end

-- Some fields of it.
local function some(names)
  local values = redis.call('HMGET', KEYS[1], 'ends', unpack(names))
  if not values[1] or now >= tonumber(values[1]) then
    return nil
  end
  local record = { ends = values[1] }
  for at, name in ipairs(names) do
    record[name] = values[at + 1]
  end
  return record
end

local function save(changes)
  redis.call('HSET', KEYS[1], unpack(changes))
end

-- Nothing is kept beyond the session's end.
local function expire(ends)
  for _, key in ipairs(KEYS) do
    redis.call('PEXPIREAT', key, ends)
  end
end

-- Whoever comes back takes back the end that two goodbyes bring. In how many milliseconds that was, or -1.
local function reopen(record)
  if record.ends == record.expires then
    return -1
  end
  save({ 'ends', record.expires })
  expire(record.expires)
  return tonumber(record.ends) - now
end

-- For the books of replicas: in how many milliseconds a session ends early, or would have (-1: neither), until when it
-- is listed now, and what waits in it.
local function books(record, early, listed)
  return {
    early, tonumber(listed), tonumber(record.expires) - now, record.a_instance, record.b_instance or '',
    number(record.a_bytes), number(record.b_bytes),
  }
end

-- Why a connection has its slot no longer. Epochs grow: one that is lower than a connection's own was that of the time
-- before it was bound, and this server has lost what came after.
local function refused(record, slot, epoch)
  local current = record[slot .. '_epoch']
  if number(current) < tonumber(epoch) then
    return 'behind'
  elseif current ~= epoch or record[slot .. '_phase'] ~= 'bound' then
    return 'fenced'
  end
end

-- Tells a replica, unless it is the one that asks.
local function tell(owner, asking, message)
  if owner and owner ~= '' and owner ~= asking then
    redis.call('PUBLISH', CHANNEL .. owner, message)
  end
end

local function lost_for(gone)
  if gone < AWAY_AFTER then
    return 'online', AWAY_AFTER - gone
  elseif gone < GRACE then
    return 'away', GRACE - gone
  end
  return 'left', -1
end

-- What the peer of a slot is told, and in how many milliseconds that changes by itself (-1: it doesn't). A slot whose
-- replica died is lost since that one was last heard of; `dead` is "<replica>:<milliseconds>,...".
local function presence(record, slot, dead)
  local phase = record[slot .. '_phase']
  if phase == 'bound' then
    local gone = dead ~= '' and string.match(dead, record[slot .. '_owner'] .. ':(%d+)')
    if gone then
      return lost_for(tonumber(gone))
    end
    return 'online', -1
  elseif phase == 'lost' then
    return lost_for(now - number(record[slot .. '_since']))
  end
  return phase, -1
end

-- Forgets what waits for a slot, up to `seq`; how many bytes that freed.
local function forget(record, slot, seq)
  local base = number(record[slot .. '_base'])
  local count = math.min(seq, number(record[slot .. '_top'])) - base
  if count <= 0 then
    return 0
  end
  local messages, freed = 0, 0
  for _, entry in ipairs(redis.call('LPOP', mail(slot), count) or {}) do
    if string.sub(entry, 1, 1) == 'm' then
      messages = messages + 1
      freed = freed + #entry - string.find(entry, ':', 1, true) + ENTRY_BYTES
    end
  end
  record[slot .. '_base'] = base + count
  save({
    slot .. '_base', base + count,
    slot .. '_count', number(record[slot .. '_count']) - messages,
    slot .. '_bytes', number(record[slot .. '_bytes']) - freed,
  })
  return freed
end
