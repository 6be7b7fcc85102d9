-- ARGV: slot, epoch, lost or left, asking replica, session (for messages).
local slot = ARGV[1]
local peer = other(slot)
local record = all()
if not record then
  return { 'gone' }
end
local refusal = refused(record, slot, ARGV[2])
if refusal then
  return { refusal }
end
save({ slot .. '_phase', ARGV[3], slot .. '_since', now, slot .. '_owner', '' })
if record[peer .. '_phase'] == 'bound' then
  tell(record[peer .. '_owner'], ARGV[4], 'peer:' .. ARGV[5] .. ':' .. peer)
end
local is_closing = ARGV[3] == 'left' and record[peer .. '_phase'] == 'left'
if not is_closing then
  return { 'ok', unpack(books(record, -1, record.expires)) }
end
local ends = math.min(tonumber(record.expires), now + BOTH_LEFT)
save({ 'ends', ends })
expire(ends)
return { 'ok', unpack(books(record, ends - now, ends)) }
