-- ARGV: slot, epoch, seq.
local slot, seq = ARGV[1], tonumber(ARGV[3])
local peer = other(slot)
local record = some({
  slot .. '_epoch', slot .. '_phase', slot .. '_base', slot .. '_top', slot .. '_sent', slot .. '_count', slot .. '_bytes',
  peer .. '_instance', 'expires',
})
if not record then
  return { 'gone' }
end
local refusal = refused(record, slot, ARGV[2])
if refusal then
  return { refusal }
elseif seq > number(record[slot .. '_sent']) then
  return { 'beyond' }
end
return { 'ok', forget(record, slot, seq), record[peer .. '_instance'] or '', tonumber(record.expires) - now }
