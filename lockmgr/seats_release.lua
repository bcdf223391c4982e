-- Deletes those locks in KEYS that begin with ARGV[1] (caller:key:random:), and
-- returns how many that were. The time after it is unknown to a holder whose
-- acquire reply was lost; the random part alone makes it one holder's.

local deleted = 0
for _, seat in ipairs(KEYS) do
  local value = redis.call('GET', seat)
  if value and value:sub(1, #ARGV[1]) == ARGV[1] then
    deleted = deleted + redis.call('DEL', seat)
  end
end
return deleted
