-- ARGV[3] session   ARGV[4] generation   ARGV[5] node   ARGV[6] why

local sid, gen, node, why = ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
sweep(0)

local s = session(sid)
if speaks(s, gen, node) then
  drop(sid, s, why, gen)
end
return finish({})
