-- Returns a snapshot.

sweep()
local answer = snapshot()
keep()
return answer
