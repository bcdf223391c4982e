-- ARGV[3] node   ARGV[4] lease, ms   then session and generation, again and again
--
-- Returns the sessions that hold nothing here any more.

local node, lease = ARGV[3], tonumber(ARGV[4])
sweep(0)

local lost = {}
for i = 5, #ARGV, 2 do
  local sid, gen = ARGV[i], tonumber(ARGV[i + 1])
  local s = session(sid)
  if s and s.state == 'live' and s.gen == gen and s.node == node then
    redis.call('ZADD', DUE, num(now + lease), sid)
  else
    lost[#lost + 1] = sid
  end
end
return finish(lost)
