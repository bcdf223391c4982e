-- Adds an event to a topic in order.
--
-- KEYS[1] meta  KEYS[2] stream  KEYS[3] channel: as in roster.lua
-- ARGV[1] the event  ARGV[2] life of the keys, ms

local time = redis.call('TIME')
local e = redis.call('HGET', KEYS[1], 'e')
if not e then
  e = string.format('%.0f', time[1] * 1000000 + time[2])
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('HSET', KEYS[1], 'e', e)
end
local s = string.format('%.0f', redis.call('HINCRBY', KEYS[1], 's', 1))
redis.call('XADD', KEYS[2], 'MAXLEN', '~', '256', s .. '-1', 'd', ARGV[1])
redis.call('SPUBLISH', KEYS[3], '{"e":"' .. e .. '","s":' .. s .. ',"d":' .. ARGV[1] .. '}')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
