-- Returns {epoch, number of the last event} and for each lock its resource,
-- session, since, active, state and by.

sweep(0)
local locks, list = redis.call('HGETALL', LOCKS), {}
for i = 1, #locks, 2 do
  local sid, _, since = locks[i + 1]:match('^(%S+) (%d+) (%d+)$')
  local s = session(sid)
  for _, v in ipairs({locks[i], sid, since, redis.call('ZSCORE', ACTIVE, sid), s.state, s.by}) do
    list[#list + 1] = v
  end
end
local reply = {epoch(), '0'}
finish()
reply[2] = redis.call('HGET', META, 's') or '0'
for _, v in ipairs(list) do
  reply[#reply + 1] = v
end
return reply
