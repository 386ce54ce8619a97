redis.call('XADD', KEYS[1], ARGV[1])
