-- ARGV: instance, dead replicas.
local record = all()
if not record or (record.a_instance ~= ARGV[1] and record.b_instance ~= ARGV[1]) then
  return { 'gone' }
end
local view = { 'ok', tonumber(record.expires) }
for _, slot in ipairs({ 'a', 'b' }) do
  local state = presence(record, slot, ARGV[2])
  view[#view + 1] = state
  view[#view + 1] = number(record[slot .. '_generation'])
  view[#view + 1] = number(record[slot .. '_count'])
end
return view
