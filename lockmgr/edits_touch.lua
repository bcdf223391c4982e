-- ARGV[3] session

sweep(0)
redis.call('ZADD', ACTIVE, 'XX', num(now), ARGV[3])
return finish({})
