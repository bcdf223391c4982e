-- What all scripts of edit locks share. One root's keys, all of one hash tag:
--
-- KEYS[1] meta      hash   e: epoch, s: number of the last event
-- KEYS[2] stream    stream events, entry "<number>-1", field d
-- KEYS[3] channel          where the events are published
-- KEYS[4] locks     hash   resource -> "session token since"
-- KEYS[5] index     zset   "session resource", all of score 0: what a session holds
-- KEYS[6] sessions  hash   session -> "generation node state by"
-- KEYS[7] due       zset   session -> when its record ends
-- KEYS[8] active    zset   session -> when it last edited
-- KEYS[9] token     string the last token given
--
-- ARGV[1] life of every key, ms   ARGV[2] life of a closed session's record, ms
--
-- A session's state is live, detached or closed. It has a record while it holds
-- something; afterwards a closed record, whose generation says which requests
-- come too late, for as long as one may still be under way. Times are
-- milliseconds of this server's clock: no other clock ends a lease.

local META, STREAM, CHANNEL = KEYS[1], KEYS[2], KEYS[3]
local LOCKS, INDEX, SESSIONS, DUE, ACTIVE, TOKEN = KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local LIFE, TOMBSTONE = ARGV[1], tonumber(ARGV[2])

-- A script is short; the rest is for the next sweep.
local MOST = 100

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local events = {}

-- Lua's own way to write a number keeps 14 digits.
local function num(n)
  return string.format('%.0f', n)
end

-- A new epoch begins where the count of events was lost.
local function epoch()
  local e = redis.call('HGET', META, 'e')
  if not e then
    e = num(time[1] * 1000000 + time[2])
    redis.call('DEL', META, STREAM)
    redis.call('HSET', META, 'e', e)
  end
  return e
end

-- A lock's end names its token: the same session may have taken it again before anybody hears of that.
local function emit(kind, res, sid, s, why, token)
  local item, page = res:match('^(.*)/(.*)$')
  events[#events + 1] = '{"type":"' .. kind .. '","resource":{"item":"' .. (item or '') .. '","page":"' .. (page or '')
    .. '"},"by":' .. s.by .. ',"session_hash":"' .. sid .. '"' .. (why and ',"why":"' .. why .. '","token":' .. token or '') .. '}'
end

-- Ends a script: its events go out in order, and what it wrote gets its life.
local function finish(reply)
  if #events > 0 then
    local e = epoch()
    local first = redis.call('HINCRBY', META, 's', #events) - #events
    for i, event in ipairs(events) do
      local s = num(first + i)
      redis.call('XADD', STREAM, 'MAXLEN', '~', '256', s .. '-1', 'd', event)
      redis.call('SPUBLISH', CHANNEL, '{"e":"' .. e .. '","s":' .. s .. ',"d":' .. event .. '}')
    end
  end
  for i, key in ipairs(KEYS) do
    if i ~= 3 then
      redis.call('PEXPIRE', key, LIFE)
    end
  end
  return reply
end

local function holder(res)
  local value = redis.call('HGET', LOCKS, res)
  if value then
    return value:match('^(%S+) (%d+) (%d+)$')
  end
end

local function session(sid)
  local value = redis.call('HGET', SESSIONS, sid)
  if value then
    local gen, node, state, by = value:match('^(%d+) (%S+) (%a+) (.*)$')
    return {gen = tonumber(gen), node = node, state = state, by = by}
  end
end

local function record(sid, s, ends)
  redis.call('HSET', SESSIONS, sid, num(s.gen) .. ' ' .. s.node .. ' ' .. s.state .. ' ' .. s.by)
  redis.call('ZADD', DUE, num(ends), sid)
end

-- Session names have one length, so none is the beginning of another.
local function owned(sid)
  local list = redis.call('ZRANGEBYLEX', INDEX, '[' .. sid .. ' ', '(' .. sid .. '!')
  for i, member in ipairs(list) do
    list[i] = member:sub(#sid + 2)
  end
  return list
end

-- Replaces a session's record by one that refuses requests up to generation
-- gen, or by none where there is no such generation.
local function close(sid, gen)
  redis.call('ZREM', ACTIVE, sid)
  if gen > 0 then
    record(sid, {gen = gen, node = '-', state = 'closed', by = '-'}, now + TOMBSTONE)
  else
    redis.call('HDEL', SESSIONS, sid)
    redis.call('ZREM', DUE, sid)
  end
end

local function free(res, sid, s, why)
  local _, token = holder(res)
  redis.call('HDEL', LOCKS, res)
  redis.call('ZREM', INDEX, sid .. ' ' .. res)
  emit('lock-released', res, sid, s, why, token)
end

-- Frees all that a session holds and closes it up to generation gen.
local function drop(sid, s, why, gen)
  for _, res in ipairs(owned(sid)) do
    free(res, sid, s, why)
  end
  close(sid, gen)
end

-- A session that holds nothing more needs no lease. It may take a lock again,
-- its older generations may not.
local function settle(sid, s)
  if redis.call('ZLEXCOUNT', INDEX, '[' .. sid .. ' ', '(' .. sid .. '!') == 0 then
    close(sid, s.gen - 1)
  end
end

-- Locks, their index and who edited exist together, sessions and their ends
-- too. Where a Redis short of memory has thrown one away the rest would stay
-- for ever: all begin anew, with an epoch that makes every viewer ask again.
local function whole()
  local held = redis.call('EXISTS', LOCKS, INDEX, ACTIVE)
  local known = redis.call('EXISTS', SESSIONS, DUE)
  if not (held == 0 and known ~= 1 or held == 3 and known == 2) then
    redis.call('DEL', META, LOCKS, INDEX, ACTIVE, SESSIONS, DUE)
  end
end

-- Every script begins with this: what has ended counts for nobody. Returns
-- milliseconds until it is worth doing again, -1 if nothing is left.
local function sweep(idle)
  whole()
  for _, sid in ipairs(redis.call('ZRANGEBYSCORE', DUE, '-inf', num(now), 'LIMIT', 0, MOST)) do
    local s = session(sid)
    if not s or s.state == 'closed' then
      close(sid, 0)
    elseif s.state == 'detached' then
      drop(sid, s, 'left', s.gen)
    else
      drop(sid, s, 'expired', s.gen - 1)
    end
  end
  local first = redis.call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2]
  local next = first and math.max(0, first - now) or -1
  if idle > 0 then
    for _, sid in ipairs(redis.call('ZRANGEBYSCORE', ACTIVE, '-inf', num(now - idle), 'LIMIT', 0, MOST)) do
      local s = session(sid)
      drop(sid, s, 'idle', s.gen - 1)
    end
    local quiet = redis.call('ZRANGE', ACTIVE, 0, 0, 'WITHSCORES')[2]
    if quiet then
      next = math.min(next, math.max(0, quiet + idle - now))
    end
  end
  return next
end

-- Whether generation gen on node may end or detach what is recorded. A newer
-- generation may: the session's last word counts, not the order of arrival.
local function speaks(s, gen, node)
  return not s or gen > s.gen or (gen == s.gen and (node == s.node or s.state == 'closed'))
end
