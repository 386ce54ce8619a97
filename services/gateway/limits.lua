#!lua name=fx2_limits
--[[ Rate limits. A scope is a key or a whole tenant. Each has two token buckets, of requests and of
tokens, that hold a minute's allowance and refill steadily, and leases of its running generations.
All keys of a call carry the tag {t<tenant>} and come in KEYS. Time is Redis's own.

key                                   type  what
fx:{t<tenant>}:limit:<scope>          hash  requests, tokens: what was left at at_ms
fx:{t<tenant>}:limit:<scope>:leases   zset  running generations by their lease's deadline in ms
fx:{t<tenant>}:limit:<scope>:holds    hash  generation -> "<tokens reserved> <tokens used so far>"
<scope>: key:<key id> or all. The three expire when the buckets are full and no lease can be left.

KEYS: three of a scope, scope by scope. ARGV: lease in ms, generation, three numbers of the function,
then of each scope requests a minute, tokens a minute, streams; 0 = no limit. ]]

local MINUTE_MS, KEPT_MS, STREAM_WAIT_MS, REAP_MAX, ALMOST = 60000, 60000, 1000, 256, 1e-6
local FIXED, PER_SCOPE = 5, 3

local function call(...) -- redis.call is not there yet while the library loads
  return redis.call(...)
end

local function now_ms()
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- What a bucket holds by now; one that nobody touched is full.
local function refilled(left, limit, passed_ms)
  if limit == 0 then return 0 end
  return math.min(limit, (tonumber(left or '') or limit) + passed_ms * limit / MINUTE_MS)
end

local function put_back(left, count, limit)
  return math.min(limit, left + count)
end

local function ms_until(left, want, limit)
  if limit == 0 or left + ALMOST >= want then return 0 end
  return math.ceil((want - left) * MINUTE_MS / limit)
end

local function hold_read(scope, id)
  local hold = call('HGET', scope.holds, id)
  if not hold then return nil end
  local reserved, used = string.match(hold, '^(%d+) (%d+)$')
  return tonumber(reserved), tonumber(used)
end

local function hold_write(scope, id, reserved, used, deadline)
  call('HSET', scope.holds, id, string.format('%d %d', reserved, used))
  call('ZADD', scope.leases, deadline, id)
end

-- Ends a generation here: what it reserved and did not use returns, its request unless it counts.
-- False when there is no such hold.
local function release(scope, id, used, counts)
  local reserved = hold_read(scope, id)
  call('ZREM', scope.leases, id)
  if not reserved then return false end
  call('HDEL', scope.holds, id)
  scope.tokens = put_back(scope.tokens, reserved - used, scope.tpm)
  if not counts then scope.requests = put_back(scope.requests, 1, scope.rpm) end
  return true
end

-- Gateways that died: their generations end with what they had told.
local function reap(scope, now)
  for _, id in ipairs(call('ZRANGEBYSCORE', scope.leases, '-inf', now, 'LIMIT', 0, REAP_MAX)) do
    local _, used = hold_read(scope, id)
    release(scope, id, used or 0, (used or 0) > 0)
  end
end

local function scope_open(keys, args, index, now)
  local k, a = PER_SCOPE * (index - 1), FIXED + PER_SCOPE * (index - 1)
  local scope = {index = index, bucket = keys[k + 1], leases = keys[k + 2], holds = keys[k + 3],
    rpm = tonumber(args[a + 1]), tpm = tonumber(args[a + 2]), streams = tonumber(args[a + 3])}
  local was = call('HMGET', scope.bucket, 'requests', 'tokens', 'at_ms')
  local passed_ms = math.max(0, now - (tonumber(was[3] or '') or now))
  scope.requests = refilled(was[1], scope.rpm, passed_ms)
  scope.tokens = refilled(was[2], scope.tpm, passed_ms)
  reap(scope, now)
  return scope
end

local function scopes_open(keys, args, now)
  local scopes = {}
  for index = 1, #keys / PER_SCOPE do scopes[index] = scope_open(keys, args, index, now) end
  return scopes
end

-- No limit, no memory: one that is set later begins full.
local function written(left, limit)
  return limit > 0 and string.format('%.6f', left) or ''
end

local function scope_close(scope, now, lease_ms)
  local full_ms = math.max(ms_until(scope.requests, scope.rpm, scope.rpm),
    ms_until(scope.tokens, scope.tpm, scope.tpm))
  local kept_ms = full_ms + lease_ms + KEPT_MS
  call('HSET', scope.bucket, 'requests', written(scope.requests, scope.rpm), 'tokens',
    written(scope.tokens, scope.tpm), 'at_ms', string.format('%d', now))
  call('PEXPIRE', scope.bucket, kept_ms)
  call('PEXPIRE', scope.leases, kept_ms)
  call('PEXPIRE', scope.holds, kept_ms)
end

-- The two buckets a client is told of: the emptiest of the scopes that limit each.
local function report(scopes, out)
  for _, what in ipairs({{'rpm', 'requests'}, {'tpm', 'tokens'}}) do
    local limit, left, full_ms = 0, 0, 0
    for _, scope in ipairs(scopes) do
      local most, has = scope[what[1]], math.max(0, math.floor(scope[what[2]] + ALMOST))
      if most > 0 and (limit == 0 or has < left) then
        limit, left, full_ms = most, has, ms_until(scope[what[2]], most, most)
      end
    end
    out[#out + 1], out[#out + 2], out[#out + 3] = limit, left, full_ms
  end
  return out
end

-- Why a scope has no room, for how long, and by which limit; nil when it has.
local function refusal(scope, now, tokens)
  if scope.tpm > 0 and tokens > scope.tpm then return 'never', 0, scope.tpm end
  local tokens_ms = ms_until(scope.tokens, tokens, scope.tpm)
  local requests_ms = ms_until(scope.requests, 1, scope.rpm)
  if tokens_ms > requests_ms then return 'tokens', tokens_ms, scope.tpm end
  if requests_ms > 0 then return 'requests', requests_ms, scope.rpm end
  if scope.streams > 0 and call('ZCOUNT', scope.leases, '(' .. now, '+inf') >= scope.streams then
    return 'streams', STREAM_WAIT_MS, scope.streams
  end
end

-- The refusal of all scopes together: `never` before the longest wait.
local function refusal_of(scopes, now, tokens)
  local status, wait_ms, limit, index = 'ok', 0, 0, 0
  for _, scope in ipairs(scopes) do
    local why, ms, by = refusal(scope, now, tokens)
    if why and status ~= 'never' and (why == 'never' or ms > wait_ms) then
      status, wait_ms, limit, index = why, ms, by, scope.index
    end
  end
  return status, wait_ms, limit, index
end

-- ARGV 3: 1 = take, 0 = only look; 4: tokens to reserve; 5: nothing. All scopes take it or none.
-- {status, wait in ms, the limit met, its scope, requests: limit, left, ms until full, tokens: same}
-- "ok" with scope 1: another request has taken it for this generation, and holds it.
local function take(keys, args)
  local now, lease_ms, id, tokens = now_ms(), tonumber(args[1]), args[2], tonumber(args[4])
  local scopes = scopes_open(keys, args, now)
  local status, wait_ms, limit, index = 'ok', 0, 0, 0
  local held = args[3] ~= '0' and call('HEXISTS', scopes[1].holds, id) == 1
  local taken = args[3] == '0' or held
  if held then index = 1 end
  if not taken then status, wait_ms, limit, index = refusal_of(scopes, now, tokens) end
  for _, scope in ipairs(scopes) do
    if not taken and status == 'ok' then
      if scope.rpm > 0 then scope.requests = scope.requests - 1 end
      if scope.tpm > 0 then scope.tokens = scope.tokens - tokens end
      hold_write(scope, id, tokens, 0, now + lease_ms)
    end
    scope_close(scope, now, lease_ms)
  end
  return report(scopes, {status, wait_ms, limit, index})
end

-- ARGV 3: tokens reserved; 4: used, as told last time; 5: used by now. A lease that ran out, or a
-- Redis that forgot, is put right: the generation runs, so what it holds is taken again, into debt.
local function renew(keys, args)
  local now, lease_ms, id = now_ms(), tonumber(args[1]), args[2]
  local reserved, told, used = tonumber(args[3]), tonumber(args[4]), tonumber(args[5])
  for _, scope in ipairs(scopes_open(keys, args, now)) do
    if not hold_read(scope, id) then
      scope.tokens = scope.tokens - (reserved - told)
      if told == 0 then scope.requests = scope.requests - 1 end
    end
    hold_write(scope, id, reserved, used, now + lease_ms)
    scope_close(scope, now, lease_ms)
  end
  return 'ok'
end

-- ARGV 3: tokens used; 4: used, as told last time; 5: 1 = the request counts.
local function settle(keys, args)
  local now, lease_ms, id = now_ms(), tonumber(args[1]), args[2]
  local used, told, counts = tonumber(args[3]), tonumber(args[4]), args[5] == '1'
  for _, scope in ipairs(scopes_open(keys, args, now)) do
    if not release(scope, id, used, counts) then
      scope.tokens = scope.tokens - (used - told)
      if told == 0 and counts then scope.requests = scope.requests - 1 end
    end
    scope_close(scope, now, lease_ms)
  end
  return 'ok'
end

redis.register_function('fx2_limits_take', take)
redis.register_function('fx2_limits_renew', renew)
redis.register_function('fx2_limits_settle', settle)
