-- A session looks at the topic.
--
-- ARGV[5] session  [6] generation  [7] node  [8] viewer: {"user":…,"name":…}
-- Returns a snapshot that has it, or {} if a later generation has taken over, or this one has ended.

local sid, gen, node, viewer = ARGV[5], tonumber(ARGV[6]), ARGV[7], ARGV[8]
sweep()
local s = session(sid)
if s and (s.gen > gen or s.gen == gen and (s.node ~= node or s.state ~= 'live')) then
  return {}
end
if not (s and s.here) and redis.call('HINCRBY', USERS, cjson.decode(viewer).user, 1) == 1 then
  emit('viewer-joined', viewer)
end
record(sid, gen, node, 'live', s and s.here and s.viewer or viewer, now + LEASE)
local answer = snapshot()
keep()
return answer
