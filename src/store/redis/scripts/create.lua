-- ARGV: instance, incarnation, rendezvous (1 or 0), e2e, turn, life in milliseconds, whether the instance may have one
-- more session, whether all mailboxes are full.
local instance, may_open = ARGV[1], ARGV[7] == '1'
local record, over = all()
if not record then
  if ARGV[8] == '1' then
    return { 'overloaded' }
  elseif not may_open then
    return { 'too_many' }
  end
  -- Epochs grow over all sessions that ever had this id, whatever was lost in between.
  local epoch = math.max(micros, number(over.a_epoch) + 1, number(over.b_epoch) + 1)
  local ends = now + tonumber(ARGV[6])
  -- Refused when memory is short, as what follows would not be: the script has begun to write then.
  save({ 'ends', ends })
  redis.call('DEL', unpack(KEYS))
  save({
    'incarnation', ARGV[2], 'e2e', ARGV[4], 'turn', ARGV[5], 'expires', ends, 'ends', ends,
    'a_instance', instance, 'a_epoch', epoch, 'a_phase', 'absent', 'a_next', 1,
    'b_epoch', epoch, 'b_phase', 'absent', 'b_next', 1,
  })
  if ARGV[3] == '0' then
    save({ 'b_instance', instance })
  end
  expire(ends)
  return { 'made', ARGV[2], ends, ARGV[3] == '1' and 'a' or '' }
end
local is_newcomer = record.a_instance ~= instance and record.b_instance ~= instance
local joins = is_newcomer and not record.b_instance
if joins and not may_open then
  return { 'too_many' }
elseif record.e2e ~= ARGV[4] then
  return { 'conflict' }
elseif joins then
  record.b_instance = instance
  save({ 'b_instance', instance })
elseif is_newcomer then
  return { 'full' }
end
local slot = record.a_instance == instance and 'a' or 'b'
-- Its ticket is good until the session expires.
local early = reopen(record)
return {
  'joined', record.incarnation, tonumber(record.expires), slot, unpack(books(record, early, record.expires)),
}
