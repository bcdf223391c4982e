-- ARGV[3] how long a session may edit nothing, ms; 0: for ever
--
-- Returns {milliseconds until the next is due, -1 if nothing is}.

return finish({num(sweep(tonumber(ARGV[3])))})
