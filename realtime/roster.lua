-- What all scripts of presence begin with. The keys of a topic have one hash tag:
--
-- KEYS[1] meta      hash    e: epoch, s: number of the last event
-- KEYS[2] stream            events, entry "<number>-1", field d
-- KEYS[3] channel           where the events are published
-- KEYS[4] sessions  hash    session -> "generation node state viewer", state being live, detached or closed
-- KEYS[5] users     hash    user -> how many of its sessions are not closed
-- KEYS[6] due       zset    session -> when its record ends
--
-- ARGV[1] life of every key  [2] lease  [3] grace  [4] life of a closed record, all in ms of this server's clock
--
-- A closed record refuses what comes late of a generation that has gone.

local META, STREAM, CHANNEL, SESSIONS, USERS, DUE = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local LIFE, LEASE, GRACE, TOMBSTONE = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local MOST = 200 -- records that one script ends

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function num(n) return string.format('%.0f', n) end -- tostring keeps 14 digits

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

local function emit(kind, viewer)
  local event = '{"type":"' .. kind .. '","viewer":' .. viewer .. '}'
  local e, s = epoch(), num(redis.call('HINCRBY', META, 's', 1))
  redis.call('XADD', STREAM, 'MAXLEN', '~', '256', s .. '-1', 'd', event)
  redis.call('SPUBLISH', CHANNEL, '{"e":"' .. e .. '","s":' .. s .. ',"d":' .. event .. '}')
end

local function session(sid)
  local value = redis.call('HGET', SESSIONS, sid)
  if value then
    local gen, node, state, viewer = value:match('^(%d+) (%S+) (%a+) (.*)$')
    return {gen = tonumber(gen), node = node, state = state, viewer = viewer, here = state ~= 'closed'}
  end
end

local function record(sid, gen, node, state, viewer, ends)
  redis.call('HSET', SESSIONS, sid, num(gen) .. ' ' .. node .. ' ' .. state .. ' ' .. viewer)
  redis.call('ZADD', DUE, num(ends), sid)
end

local function forget(sid)
  redis.call('HDEL', SESSIONS, sid)
  redis.call('ZREM', DUE, sid)
end

-- Takes a session from the users, who are told of the last one alone.
local function drop(sid, s)
  local user = cjson.decode(s.viewer).user
  if redis.call('HINCRBY', USERS, user, -1) <= 0 then
    redis.call('HDEL', USERS, user)
    emit('viewer-left', s.viewer)
  end
  forget(sid)
end

local function sweep()
  for _, sid in ipairs(redis.call('ZRANGEBYSCORE', DUE, '-inf', num(now), 'LIMIT', 0, MOST)) do
    local s = session(sid)
    if s and s.here then
      drop(sid, s)
      if s.state == 'detached' then
        record(sid, s.gen, '-', 'closed', '-', now + TOMBSTONE)
      end
    else
      forget(sid)
    end
  end
end

local function keep()
  for i, key in ipairs(KEYS) do
    if i ~= 3 then redis.call('PEXPIRE', key, LIFE) end
  end
end

-- Whether generation gen on node may end what is recorded: a newer one may, an older one comes too late.
local function speaks(s, gen, node)
  return not s or gen > s.gen or gen == s.gen and (node == s.node or not s.here)
end

-- {epoch, number, viewer…}, each user once.
local function snapshot()
  local answer, seen, all = {epoch(), redis.call('HGET', META, 's') or '0'}, {}, redis.call('HVALS', SESSIONS)
  for _, value in ipairs(all) do
    local state, viewer = value:match('^%d+ %S+ (%a+) (.*)$')
    if state ~= 'closed' then
      local user = cjson.decode(viewer).user
      if not seen[user] then
        seen[user] = true
        answer[#answer + 1] = viewer
      end
    end
  end
  return answer
end
