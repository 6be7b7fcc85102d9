-- ARGV: slot, incarnation, connection, attempt (20 digits), last, asking replica, page loads a minute, resumes a
-- minute, dead replicas, session (for messages).
local slot, connection, attempt, last, asking = ARGV[1], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local record = all()
local instance = record and record[slot .. '_instance']
if not instance or record.incarnation ~= ARGV[2] then
  return { 'gone' }
end

local function get(name)
  return record[slot .. '_' .. name]
end

-- One more within the minute that the first one began: the counter's new value, or nothing if `most` were reached.
local function count(name, most)
  local began, times = string.match(get(name) or '', '(%d+):(%d+)')
  if not began or now - began >= MINUTE then
    began, times = now, 0
  end
  if tonumber(times) < tonumber(most) then
    return string.format('%.0f:%.0f', began, times + 1)
  end
end

local retired = get('retired') or ''
local is_new = get('connection') ~= connection
if is_new and string.find(retired, connection, 1, true) then
  return { 'replaced' }
elseif not is_new and attempt <= get('attempt') then
  return { 'replaced' }
elseif last > number(get('sent')) then
  return { 'beyond' }
end

local generation, next = number(get('generation')), number(get('next'))
local epoch = math.max(number(get('epoch')) + 1, micros)
local changes = {
  slot .. '_epoch', epoch, slot .. '_phase', 'bound', slot .. '_owner', asking, slot .. '_attempt', attempt,
}
local function set(name, value)
  changes[#changes + 1] = slot .. '_' .. name
  changes[#changes + 1] = value
end

if is_new then
  local loads = count('loads', ARGV[7])
  if not loads then
    return { 'loads' }
  end
  if get('connection') then
    -- The latest RETIRED of them, with a comma after each.
    retired = string.sub(retired .. get('connection') .. ',', -RETIRED * (#connection + 1))
  end
  generation, next = generation + 1, 1
  set('loads', loads)
  set('resumes', '')
  set('retired', retired)
  set('connection', connection)
  set('generation', generation)
  set('next', next)
else
  local resumes = count('resumes', ARGV[8])
  if not resumes then
    return { 'resumes' }
  end
  set('resumes', resumes)
end
save(changes)

local freed = forget(record, slot, last)
local peer = other(slot)
if is_new and generation > 1 then
  if redis.call('RPUSH', mail(peer), 'l' .. generation .. ':') == 1 then
    redis.call('PEXPIREAT', mail(peer), record.expires)
  end
  save({ peer .. '_top', number(record[peer .. '_top']) + 1 })
end
local early = reopen(record)

if get('phase') == 'bound' then
  tell(get('owner'), asking, string.format('replaced:%s:%s:%.0f', ARGV[10], slot, epoch))
end
if record[peer .. '_phase'] == 'bound' then
  tell(record[peer .. '_owner'], asking, 'peer:' .. ARGV[10] .. ':' .. peer)
end
local state, changes_in = presence(record, peer, ARGV[9])
return {
  'ok', epoch, generation, is_new and 1 or 0, next, number(record[slot .. '_base']),
  state, number(record[peer .. '_generation']), changes_in,
  record.e2e, tonumber(record.turn), instance, tonumber(record.expires), tonumber(record.expires) - now,
  freed, record[peer .. '_instance'] or '', unpack(books(record, early, record.expires)),
}
