-- ARGV: slot, epoch, n, whether there is room outside this session, messages and bytes that may wait, messages of the
-- session, asking replica, session (for messages), content.
local slot, n, asking = ARGV[1], tonumber(ARGV[3]), ARGV[8]
local peer = other(slot)
local record = some({
  slot .. '_epoch', slot .. '_phase', slot .. '_generation', slot .. '_next', 'messages',
  peer .. '_top', peer .. '_count', peer .. '_bytes', peer .. '_owner', peer .. '_phase',
})
if not record then
  return { 'gone' }
end
local refusal = refused(record, slot, ARGV[2])
if refusal then
  return { refusal }
end
local next, messages = number(record[slot .. '_next']), number(record.messages)
if n < next then
  return { 'duplicate' }
elseif n > next then
  return { 'out_of_step' }
elseif messages >= tonumber(ARGV[7]) then
  return { 'total' }
end
local count = number(record[peer .. '_count']) + 1
local bytes = number(record[peer .. '_bytes']) + #ARGV[10] + ENTRY_BYTES
if ARGV[4] ~= '1' or count > tonumber(ARGV[5]) or bytes > tonumber(ARGV[6]) then
  return { 'full' }
end
if redis.call('RPUSH', mail(peer), 'm' .. record[slot .. '_generation'] .. ':' .. ARGV[10]) == 1 then
  redis.call('PEXPIREAT', mail(peer), record.ends)
end
save({
  slot .. '_next', n + 1, 'messages', messages + 1,
  peer .. '_top', number(record[peer .. '_top']) + 1, peer .. '_count', count, peer .. '_bytes', bytes,
})
local is_elsewhere = record[peer .. '_phase'] == 'bound' and record[peer .. '_owner'] ~= asking
if is_elsewhere then
  tell(record[peer .. '_owner'], asking, 'mail:' .. ARGV[9] .. ':' .. peer)
end
return { 'stored', is_elsewhere and 1 or 0 }
