-- Renews the leases of sessions that are connected to a node, and ends what is over.
--
-- ARGV[5] node, then session and generation of each
-- Returns the sessions that are not here any more.

local node, lost = ARGV[5], {}
for i = 6, #ARGV, 2 do
  local s = session(ARGV[i])
  if s and s.state == 'live' and s.node == node and s.gen == tonumber(ARGV[i + 1]) then
    redis.call('ZADD', DUE, num(now + LEASE), ARGV[i])
  else
    lost[#lost + 1] = ARGV[i]
  end
end
sweep()
keep()
return lost
