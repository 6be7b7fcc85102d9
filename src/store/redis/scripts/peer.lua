-- ARGV: slot, dead replicas.
local record = all()
if not record then
  return { 'gone' }
end
local peer = other(ARGV[1])
local state, changes_in = presence(record, peer, ARGV[2])
return { 'ok', state, number(record[peer .. '_generation']), changes_in }
