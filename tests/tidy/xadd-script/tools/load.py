redis.execute("XADD", log, "9-0")
