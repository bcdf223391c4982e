-- ARGV[3] session   ARGV[4] resource   ARGV[5] token
--
-- Returns {released} or {not held}.

sweep(0)
local sid, res = ARGV[3], ARGV[4]
local by, token = holder(res)
if by ~= sid or token ~= ARGV[5] then
  return finish({'not held'})
end
local s = session(sid)
free(res, sid, s, 'unlocked')
settle(sid, s)
return finish({'released'})
