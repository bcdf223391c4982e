-- ARGV[3] session   ARGV[4] generation   ARGV[5] node   ARGV[6] by, JSON
-- ARGV[7] lease, ms
--
-- Returns {closed}, or {ok} and for each lock of the session its resource,
-- token and since.

local sid, gen, node, by = ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
sweep(0)

local s = session(sid)
if s and (gen < s.gen or (gen == s.gen and s.state == 'closed')) then
  return finish({'closed'})
end
if not s or s.state == 'closed' then
  close(sid, gen - 1)
  return finish({'ok'})
end

local back = s.state == 'detached'
s = {gen = gen, node = node, state = 'live', by = by}
record(sid, s, now + ARGV[7])
redis.call('ZADD', ACTIVE, num(now), sid)
local reply = {'ok'}
for _, res in ipairs(owned(sid)) do
  if back then
    emit('lock-attached', res, sid, s)
  end
  local _, token, since = holder(res)
  reply[#reply + 1] = res
  reply[#reply + 1] = token
  reply[#reply + 1] = since
end
return finish(reply)
