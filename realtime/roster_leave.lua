-- A session looks elsewhere ("left"), has lost its connection ("detached"), or is over ("closed").
--
-- ARGV[5] session  [6] generation  [7] node  [8] left | detached | closed
-- Returns 1, or 0 if a later generation has taken over.

local sid, gen, node, how = ARGV[5], tonumber(ARGV[6]), ARGV[7], ARGV[8]
local s = session(sid)
if not speaks(s, gen, node) then
  return 0
end
if how == 'detached' then
  if not s then
    record(sid, gen, node, 'closed', '-', now + TOMBSTONE)
  elseif s.state == 'live' then
    record(sid, gen, node, 'detached', s.viewer, now + GRACE)
  end
else
  if s and s.here then drop(sid, s) end
  if how == 'closed' then
    record(sid, gen, node, 'closed', '-', now + TOMBSTONE)
  end
end
keep()
return 1
