-- ARGV[3] node   ARGV[4] lease, ms   then session and generation, again and again
--
-- Returns the sessions that hold nothing here any more.

sweep(0)
local live = ' ' .. ARGV[3] .. ' live '
local ends = num(now + ARGV[4])

-- Few calls for many sessions: with two a session, 500 took 2 ms.
local BATCH = 500
local lost = {}
for first = 5, #ARGV, 2 * BATCH do
  local sids, renewed = {}, {}
  for i = first, math.min(first + 2 * BATCH, #ARGV) - 1, 2 do
    sids[#sids + 1] = ARGV[i]
  end
  for i, value in ipairs(redis.call('HMGET', SESSIONS, unpack(sids))) do
    local want = ARGV[first + 2 * i - 1] .. live
    if value and value:sub(1, #want) == want then
      renewed[#renewed + 1] = ends
      renewed[#renewed + 1] = sids[i]
    else
      lost[#lost + 1] = sids[i]
    end
  end
  if #renewed > 0 then
    redis.call('ZADD', DUE, unpack(renewed))
  end
end
return finish(lost)
