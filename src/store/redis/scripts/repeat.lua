-- Wakes a receiver again while something waits for it. ARGV: its slot, asking replica, session (for messages).
local slot = ARGV[1]
local record = some({ slot .. '_phase', slot .. '_owner', slot .. '_base', slot .. '_top' })
if not record or record[slot .. '_phase'] ~= 'bound' or record[slot .. '_owner'] == ARGV[2] then
  return 0
elseif number(record[slot .. '_top']) <= number(record[slot .. '_base']) then
  return 0
end
tell(record[slot .. '_owner'], ARGV[2], 'mail:' .. ARGV[3] .. ':' .. slot)
return 1
