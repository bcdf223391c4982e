-- Locks every seat in KEYS, or none.
--
-- ARGV[1] hash of the caller   ARGV[2] hash of its idempotency key
-- ARGV[3] random, hex          ARGV[4] time to live, milliseconds
--
-- A lock's value is caller:key:random:taken, with taken in milliseconds of this
-- server's clock. Returns {0} acquired, {1, i, ...} KEYS[i] is another caller's,
-- {2} the very same request holds a lock.

local caller, key, random, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local busy = {1}
for i, seat in ipairs(KEYS) do
  local value = redis.call('GET', seat)
  if value then
    local by, with, taken = value:match('^(%x+):(%x+):%x+:(%d+)$')
    local left = redis.call('PTTL', seat)
    -- Only a lock that we can read and that will end in time counts. The rest
    -- (written by hand, restored from an old copy, without expiry) would turn
    -- buyers away from a seat that nobody is buying.
    if taken and left >= 0 and left <= ttl and now - taken <= ttl then
      if by ~= caller then
        busy[#busy + 1] = i
      elseif with == key then
        return {2}
      end
    end
  end
end
if #busy > 1 then
  return busy
end

local value = string.format('%s:%s:%s:%.0f', caller, key, random, now)
for _, seat in ipairs(KEYS) do
  redis.call('SET', seat, value, 'PX', ttl)
end
return {0}
