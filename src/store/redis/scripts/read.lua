-- ARGV: slot, epoch, after, bytes, the n after the last that was acknowledged. Answers the first entry's seq, whether
-- these are all, and the entries, or that this server has lost what a connection was told before: that its messages are
-- stored, or messages.
local slot, bytes = ARGV[1], tonumber(ARGV[4])
local record = some({ slot .. '_epoch', slot .. '_phase', slot .. '_base', slot .. '_sent', slot .. '_next' })
if not record then
  return { 'gone' }
end
local refusal = refused(record, slot, ARGV[2])
if refusal then
  return { refusal }
elseif tonumber(ARGV[3]) > number(record[slot .. '_sent']) or tonumber(ARGV[5]) > number(record[slot .. '_next']) then
  return { 'behind' }
end
local PAGE = 16
local base = number(record[slot .. '_base'])
local at = math.max(tonumber(ARGV[3]) - base, 0)
local answer = { 'ok', base + at + 1, 0 }
local room = bytes

-- A client may know of what was read, and of no more. When memory is short only what frees some is allowed, unless the
-- script has begun to write: the end that the record has already is a beginning.
local function done(is_last)
  answer[3] = is_last and 1 or 0
  local last = answer[2] + #answer - 4
  if #answer > 3 and last > number(record[slot .. '_sent']) then
    redis.call('PEXPIREAT', KEYS[1], record.ends)
    save({ slot .. '_sent', last })
  end
  return answer
end

while true do
  local entries = redis.call('LRANGE', mail(slot), at, at + PAGE - 1)
  for _, entry in ipairs(entries) do
    if string.sub(entry, 1, 1) == 'm' then
      local size = #entry - string.find(entry, ':', 1, true) + ENTRY_BYTES
      if room ~= bytes and size > room then
        return done(false)
      end
      room = math.max(room - size, 0)
    end
    answer[#answer + 1] = entry
  end
  at = at + PAGE
  if #entries < PAGE then
    return done(true)
  end
end
