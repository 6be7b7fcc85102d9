-- ARGV: slot, epoch, lost or left, asking replica, session (for messages).
local slot = ARGV[1]
local peer = other(slot)
local record = all()
if not record then
  return { 'gone' }
elseif not holds(record, slot, ARGV[2]) then
  return { 'fenced' }
end
save({ slot .. '_phase', ARGV[3], slot .. '_since', now, slot .. '_owner', '' })
if record[peer .. '_phase'] == 'bound' then
  tell(record[peer .. '_owner'], ARGV[4], 'peer:' .. ARGV[5] .. ':' .. peer)
end
local is_closing = ARGV[3] == 'left' and record[peer .. '_phase'] == 'left'
local ends = tonumber(record.expires)
if is_closing then
  ends = math.min(ends, now + BOTH_LEFT)
  save({ 'ends', ends })
  expire(ends)
end
return { 'ok', is_closing and 1 or 0, ends, record.a_instance, record.b_instance or '' }
