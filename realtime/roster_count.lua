-- Counts the viewers of a topic that nobody is named at: each node says how many it has, and for a while only.
--
-- KEYS[1] counts hash node -> viewers   KEYS[2] due zset node -> when its word ends
-- ARGV[1] life of the keys  [2] lease, both ms  [3] node  [4] viewers
-- Returns the viewers of all nodes.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, node in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))) do
  redis.call('HDEL', KEYS[1], node)
  redis.call('ZREM', KEYS[2], node)
end
if ARGV[4] == '0' then
  redis.call('HDEL', KEYS[1], ARGV[3])
  redis.call('ZREM', KEYS[2], ARGV[3])
else
  redis.call('HSET', KEYS[1], ARGV[3], ARGV[4])
  redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[2]), ARGV[3])
end
local n = 0
for _, count in ipairs(redis.call('HVALS', KEYS[1])) do n = n + count end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return n
