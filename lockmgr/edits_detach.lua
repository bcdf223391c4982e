-- ARGV[3] session   ARGV[4] generation   ARGV[5] node   ARGV[6] grace, ms

local sid, gen, node = ARGV[3], tonumber(ARGV[4]), ARGV[5]
sweep(0)

local s = session(sid)
if not speaks(s, gen, node) then
  return finish({})
end
if not s or s.state == 'closed' then
  close(sid, gen)
elseif s.state == 'live' or gen > s.gen then
  local seen = s.state == 'live'
  s.gen, s.node, s.state = gen, node, 'detached'
  record(sid, s, now + ARGV[6])
  if seen then
    for _, res in ipairs(owned(sid)) do
      emit('lock-detached', res, sid, s)
    end
  end
end
return finish({})
