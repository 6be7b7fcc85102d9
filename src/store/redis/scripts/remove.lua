-- ARGV: instance, asking replica, message for the replicas that hold connections.
local record = all()
if not record or (record.a_instance ~= ARGV[1] and record.b_instance ~= ARGV[1]) then
  return { 'gone' }
end
redis.call('DEL', unpack(KEYS))
local removed = {
  'ok', tonumber(record.expires) - now, record.a_instance, record.b_instance or '', number(record.a_bytes),
  number(record.b_bytes),
}
for _, slot in ipairs({ 'a', 'b' }) do
  local owner = record[slot .. '_phase'] == 'bound' and record[slot .. '_owner'] or ''
  if slot == 'b' and owner == removed[#removed] then
    owner = ''
  end
  tell(owner, ARGV[2], ARGV[3])
  removed[#removed + 1] = owner
end
return removed
