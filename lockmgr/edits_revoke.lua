-- ARGV[3] how the JSON of the user's sessions begins

sweep(0)
local sessions = redis.call('HGETALL', SESSIONS)
for i = 1, #sessions, 2 do
  local sid = sessions[i]
  local s = session(sid)
  if s.by:sub(1, #ARGV[3]) == ARGV[3] then
    drop(sid, s, 'withdrawn', s.gen - 1)
  end
end
return finish({})
