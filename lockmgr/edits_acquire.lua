-- ARGV[3] session   ARGV[4] generation   ARGV[5] node   ARGV[6] by, JSON
-- ARGV[7] resource  ARGV[8] lease, ms    ARGV[9] "1": take over
--
-- Returns {ok, token, since}, {closed}, or
-- {held, resource, session, since, active, state, by} of a lock in the way.

local sid, gen, node, by = ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local res, lease, take = ARGV[7], tonumber(ARGV[8]), ARGV[9] == '1'
sweep(0)

local s = session(sid)
if s and (gen < s.gen or (gen == s.gen and (s.state ~= 'live' or s.node ~= node))) then
  return finish({'closed'})
end

-- The group stands in the way of every member, also of one that is new, and
-- every member in the way of the group. The lock asked for comes first.
local rivals = {}
local function rival(other)
  local by = holder(other)
  if by and by ~= sid then
    rivals[#rivals + 1] = {res = other, sid = by}
  end
end
rival(res)
if res ~= '' then
  rival('')
elseif redis.call('HLEN', LOCKS) > redis.call('ZLEXCOUNT', INDEX, '[' .. sid .. ' ', '(' .. sid .. '!') then
  for _, member in ipairs(redis.call('ZRANGE', INDEX, 0, -1)) do
    local other = member:match(' (.*)$')
    if other ~= '' then
      rival(other)
    end
  end
end
if #rivals > 0 and not take then
  local r = rivals[1]
  local other = session(r.sid)
  local _, _, since = holder(r.res)
  return finish({'held', r.res, r.sid, since, redis.call('ZSCORE', ACTIVE, r.sid), other.state, other.by})
end
for _, r in ipairs(rivals) do
  local other = session(r.sid)
  free(r.res, r.sid, other, 'taken-over')
  settle(r.sid, other)
end

local back = s and s.state == 'detached'
s = {gen = gen, node = node, state = 'live', by = by}
record(sid, s, now + lease)
redis.call('ZADD', ACTIVE, num(now), sid)
if back then
  for _, own in ipairs(owned(sid)) do
    emit('lock-attached', own, sid, s)
  end
end

local own, token, since = holder(res)
if not own then
  -- Begins at the time, so that a count that was lost repeats no token.
  redis.call('SET', TOKEN, num(time[1] * 1000000 + time[2]), 'NX')
  token, since = num(redis.call('INCR', TOKEN)), num(now)
  redis.call('HSET', LOCKS, res, sid .. ' ' .. token .. ' ' .. since)
  redis.call('ZADD', INDEX, 0, sid .. ' ' .. res)
  emit('lock-acquired', res, sid, s)
end
return finish({'ok', token, since})
