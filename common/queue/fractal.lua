#!lua name=fx3
--[[ The generations' queue. Every key of a call carries the tag {m<model>} and comes in KEYS; none is
computed here. Channels and numbers come in ARGV. Time is Redis's own.

key                    type    what                                            expiry
fx:{m}:gen:<id>        hash    one generation, fields below                    retain after the end
fx:{m}:log:<id>        stream  <n>-0 {t token [l logprobs]}, n >= 1;           retain after the end
                               <n>-1 {f reason d text} is the finish record
                               behind the last token n
fx:{m}:wait:<tenant>   zset    backlog: id by order of submission              none; empty = gone
fx:{m}:tenants         zset    tenants with a backlog by virtual start time    none; empty = gone
fx:{m}:debt            zset    other tenants whose finish tag is ahead of it   pruned as time passes
fx:{m}:meta            hash    v virtual time, seq submissions, entry last and none
                               taken last delivered entry of tasks, waiting,
                               beat and since: see reclaim; from:<tenant> the
                               virtual time at which its backlog began
fx:{m}:tasks           stream  <entry>-0 {g id, e epoch}, consumer group w     trimmed at the oldest
fx:{m}:ready           zset    dispatched, not taken: id by entry                live entry
fx:{m}:leases          zset    running: id by deadline in ms
fx:{m}:alive           zset    workers by last heartbeat                       silent ones dropped
fx:{m}:workers         hash    worker -> "slots free context leaving numerics"   with alive
fx:{m}:figures         hash    worker -> its packed WorkerFigures                with alive
fx:{m}:dead            stream  {g id t tenant e epoch n tokens d text} of what  the oldest go
                               was given up

Writers: submit gen wait tenants debt meta; dispatch all but gen:task, log; pull gen tasks ready
leases meta; append gen log leases; renew leases; finish, reclaim (and dead), cancel, restore all;
beat alive workers figures.

gen: tenant weight prompt expected seed retain task about (what stays of the task) state epoch
     n (tokens logged) cancel charged entry owner
     pn (n at delivery) fruitless num (numerics of the logged tokens) pnum (of the owner)
     given (back by the owner) finish

An entry of tasks that is not in ready was cancelled: a tombstone, acknowledged when it is next in
line. Entries are only acknowledged and trimmed, never deleted, so that the group's lag stays true.

Fairness: start-time fair queueing. A tenant's start tag is max(v, its finish tag); the smallest is
served, v becomes it, the finish tag grows by cost / weight. At the end the tag is corrected by what
the generation really cost; of one that waits also to behind v, though not to before its backlog began.
Tags behind v of those that do not wait are forgotten: idleness earns nothing. A tenant that begins to wait,
and has no debt, is next. ]]

local OK, NOT_FOUND, LEASE_LOST, GAP, ABANDON, CANCELLED = 0, 1, 2, 3, 4, 5
local MODEL_FULL, TENANT_FULL, TAKEN = 6, 7, 8
local QUEUED, DISPATCHED, RUNNING, FINISHED, STATE_CANCELLED, FAILED = 1, 2, 3, 4, 5, 6
local REASON_CANCELLED, REASON_ERROR = 3, 4
local WORKERS_MAX, WORKER_KEPT_MS = 256, 60000
local DEAD_MAX, FORGET_MAX, ORDERS = 1000, 1000, 1048576

-- redis.call is not there yet while the library loads.
local function call(...)
  return redis.call(...)
end

local function now_ms()
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function number(value)
  return tonumber(value or 0) or 0
end

local function gen_read(gen)
  local f = call('HMGET', gen, 'state', 'epoch', 'n', 'cancel', 'tenant', 'weight', 'prompt',
    'expected', 'charged', 'entry', 'owner', 'pn', 'fruitless', 'seed', 'finish', 'retain')
  if not f[1] then return nil end
  return {state = number(f[1]), epoch = number(f[2]), n = number(f[3]), cancel = number(f[4]),
    tenant = f[5], weight = number(f[6]), prompt = number(f[7]), expected = number(f[8]),
    charged = number(f[9]), entry = f[10], owner = f[11] or '', pn = number(f[12]),
    fruitless = number(f[13]), seed = f[14], finish = number(f[15]), retain = f[16]}
end

-- What append, finish and renew answer.
local function written(status, g)
  return {status, g and g.cancel or 0, g and g.n or 0}
end

-- `owner` empty: whoever has the epoch. After a loss of Redis two workers may have the same one.
local function leased(g, epoch, owner)
  return g.state == RUNNING and g.epoch == epoch and (owner == '' or owner == g.owner)
end

-- ---- fairness ----

local function virtual_time(meta)
  return number(call('HGET', meta, 'v'))
end

-- Charges a tenant `delta` of virtual time. Back behind the present only one that waits: it would
-- have been served meanwhile. fx2_submit does not say since when it does, and fx2_dispatch leaves what
-- was said.
local function charge(k, tenant, delta)
  local v = virtual_time(k.meta)
  local start = call('ZSCORE', k.tenants, tenant)
  if start then
    local from = tonumber(call('HGET', k.meta, 'from:' .. tenant) or v)
    call('ZADD', k.tenants, math.max(math.min(from, v), start + delta), tenant)
    return
  end
  local finish = number(call('ZSCORE', k.debt, tenant) or v) + delta
  if finish > v then call('ZADD', k.debt, finish, tenant) else call('ZREM', k.debt, tenant) end
end

local function settle(k, g, cost)
  if g.charged ~= cost then charge(k, g.tenant, (cost - g.charged) / g.weight) end
end

-- Its backlog is empty.
local function tenant_leaves(k, tenant)
  call('ZREM', k.tenants, tenant)
  call('HDEL', k.meta, 'from:' .. tenant)
end

-- With nothing queued or running every debt is forgiven and the clock starts again.
local function reset_if_idle(k)
  if call('ZCARD', k.tenants) + call('ZCARD', k.ready) + call('ZCARD', k.leases) > 0 then return end
  call('DEL', k.debt)
  call('HDEL', k.meta, 'v')
end

-- ---- the task stream ----

local rebuild

local function enqueue(k, id, epoch)
  if call('EXISTS', k.tasks) == 0 then rebuild(k) end
  local entry = call('HINCRBY', k.meta, 'entry', 1)
  call('XADD', k.tasks, string.format('%.0f-0', entry), 'g', id, 'e', epoch)
  call('ZADD', k.ready, entry, id)
  return string.format('%.0f', entry)
end

local function acknowledge(k, entry)
  call('XACK', k.tasks, 'w', entry .. '-0')
end

-- The stream or its group is not there, or not what `ready` says: made from `ready`.
function rebuild(k)
  local waiting, last = call('ZRANGE', k.ready, 0, -1), number(call('HGET', k.meta, 'entry'))
  call('DEL', k.tasks, k.ready)
  call('HSET', k.meta, 'taken', last)
  call('XGROUP', 'CREATE', k.tasks, 'w', '0', 'MKSTREAM', 'ENTRIESREAD', 0)
  if last > 0 then
    local id = string.format('%.0f-0', last)
    call('XSETID', k.tasks, id, 'ENTRIESADDED', last, 'MAXDELETEDID', id)
    call('XGROUP', 'SETID', k.tasks, 'w', id, 'ENTRIESREAD', last)
  end
  for _, id in ipairs(waiting) do enqueue(k, id, 0) end
end

-- Delivers the next `count` entries; returns them, or nil when the stream had to be made again.
local function deliver(k, count)
  local read = redis.pcall('XREADGROUP', 'GROUP', 'w', 'w', 'COUNT', count, 'STREAMS', k.tasks, '>')
  local entries = read and not read.err and read[1] and read[1][2] or {}
  if #entries ~= count then return rebuild(k) end
  local taken = call('HINCRBY', k.meta, 'taken', count)
  -- Redis 7.0 forgets entries-read when it replays XREADGROUP from the AOF, and lag with it.
  call('XGROUP', 'SETID', k.tasks, 'w', entries[count][1], 'ENTRIESREAD', taken)
  return entries
end

-- Takes the first of `ready`, which is next in line; returns its entry's number.
local function deliver_next(k, id)
  local entry = (deliver(k, 1) or deliver(k, 1))[1][1]
  call('ZREM', k.ready, id)
  return string.match(entry, '^%d+')
end

-- Takes cancelled entries from the front, so that they do not count as waiting.
local function skip_tombstones(k)
  local head = call('ZRANGE', k.ready, 0, 0, 'WITHSCORES')
  local marks = call('HMGET', k.meta, 'taken', 'entry')
  local stop = head[2] and head[2] - 1 or number(marks[2])
  local count = stop - number(marks[1])
  if count <= 0 then return end
  for _, entry in ipairs(deliver(k, count) or {}) do call('XACK', k.tasks, 'w', entry[1]) end
end

-- Cuts the stream before its oldest entry that is pending or not delivered.
local function trim(k)
  if call('EXISTS', k.tasks) == 0 then return end
  local pending = call('XPENDING', k.tasks, 'w', '-', '+', 1)
  local oldest = pending[1] and pending[1][1]
  if not oldest then oldest = string.format('%.0f-0', number(call('HGET', k.meta, 'taken')) + 1) end
  call('XTRIM', k.tasks, 'MINID', '=', oldest)
end

-- ---- the end of a generation ----

-- k also holds gen, log, hint (channel).
local function end_generation(k, g, state, reason, detail)
  call('XADD', k.log, string.format('%.0f-1', g.n), 'f', reason, 'd', detail)
  call('HSET', k.gen, 'state', state, 'finish', reason)
  -- fx2_submit kept no `about`: those who come back read the task then.
  if (call('HGET', k.gen, 'about') or '') ~= '' then call('HDEL', k.gen, 'task') end
  call('EXPIRE', k.log, g.retain)
  call('EXPIRE', k.gen, g.retain)
  call('PUBLISH', k.hint, string.format('%.0f %d ', g.n + 1, reason) .. detail)
  g.state, g.finish = state, reason
end

local function release(k, g, id)
  call('ZREM', k.leases, id)
  acknowledge(k, g.entry)
end

local function state_of(reason)
  if reason == REASON_CANCELLED then return STATE_CANCELLED end
  if reason == REASON_ERROR then return FAILED end
  return FINISHED
end

-- ---- submit: KEYS wait tenants debt meta, gen...
-- ARGV tenant weight prompt expected model_max tenant_max sched model retain_s task about, and for
-- each: id seed task about (what is its own of these, behind the shared)
-- The generations of one request: all of them wait then, or none.

local function full(k, args, more)
  if number(call('HGET', k.meta, 'waiting')) + more > tonumber(args[5]) then return MODEL_FULL end
  if call('ZCARD', k.wait) + more > tonumber(args[6]) then return TENANT_FULL end
  return nil
end

local function submit_one(k, gen, args, at)
  call('HSET', gen, 'tenant', args[1], 'weight', args[2], 'prompt', args[3], 'expected', args[4],
    'seed', args[at + 1], 'state', QUEUED, 'epoch', 1, 'n', 0, 'retain', args[9],
    'task', args[10] .. args[at + 2], 'about', args[11] .. args[at + 3])
  local added = call('ZADD', k.wait, call('HINCRBY', k.meta, 'seq', 1), args[at])
  call('HINCRBY', k.meta, 'waiting', added) -- 0: only its hash was lost
end

-- Where a backlog begins: just before all that were served since theirs began, and with those that
-- were not.
local function begin_of(k)
  local v, first = virtual_time(k.meta), call('ZRANGE', k.tenants, 0, 0, 'WITHSCORES')
  if not first[1] then return v end
  local from = tonumber(call('HGET', k.meta, 'from:' .. first[1]) or 0)
  return math.min(v, first[2] - from < 1 and from or first[2] - 1)
end

-- Those that begin at the same time come in the order of their submission.
local function tenant_waits(k, tenant)
  if call('ZSCORE', k.tenants, tenant) then return end
  local from, tag = begin_of(k), number(call('ZSCORE', k.debt, tenant))
  local order = number(call('HGET', k.meta, 'seq')) % ORDERS / ORDERS
  call('ZADD', k.tenants, math.max(from + order, tag), tenant)
  call('HSET', k.meta, 'from:' .. tenant, from)
  call('ZREM', k.debt, tenant)
end

local function submit(keys, args)
  local k = {wait = keys[1], tenants = keys[2], debt = keys[3], meta = keys[4]}
  local known, new = {}, 0
  for i = 5, #keys do
    known[i] = gen_read(keys[i])
    if not known[i] then
      new = new + 1
    elseif known[i].tenant ~= args[1] then
      return {TAKEN}
    end
  end
  local refused = new > 0 and full(k, args, new)
  if refused then return {refused} end
  local reply = {OK}
  for i = 5, #keys do
    local g, at = known[i], 12 + (i - 5) * 4
    if not g then submit_one(k, keys[i], args, at) end
    local of = g and {1, g.seed, g.state, g.cancel} or {0, args[at + 1], QUEUED, 0}
    for j = 1, 4 do reply[#reply + 1] = of[j] end
  end
  if new == 0 then return reply end
  tenant_waits(k, args[1])
  call('PUBLISH', args[7], args[8])
  return reply
end

-- ---- dispatch: KEYS tasks ready tenants debt meta leases alive workers, wait..., gen...
-- ARGV alive_ms work tenants_n, tenant..., id...

local function live_slots(k, alive_ms)
  local live = call('ZRANGEBYSCORE', k.alive, now_ms() - alive_ms, '+inf')
  if #live == 0 then return 0 end
  local slots = 0
  for _, record in ipairs(call('HMGET', k.workers, unpack(live))) do
    local own, leaving = string.match(record or '', '^(%d+) %d+ %d+ (%d)')
    if leaving == '0' then slots = slots + own end
  end
  return slots
end

-- Moves the first task of the tenant with the smallest tag; one that Redis lost only goes.
local function dispatch_one(k, tenant, start, wait, id, gen)
  local g = gen_read(gen)
  if g and g.state ~= QUEUED then g = nil end
  local finish = g and start + (g.prompt + g.expected) / g.weight or start
  call('ZREM', wait, id)
  call('HINCRBY', k.meta, 'waiting', -1)
  call('HSET', k.meta, 'v', start)
  if call('EXISTS', wait) == 1 then
    call('ZADD', k.tenants, finish, tenant)
  else
    tenant_leaves(k, tenant)
    call('ZADD', k.debt, finish, tenant)
  end
  call('ZREMRANGEBYSCORE', k.debt, '-inf', start)
  if not g then return 0 end
  local entry = enqueue(k, id, g.epoch)
  call('HSET', gen, 'state', DISPATCHED, 'entry', entry, 'charged', g.prompt + g.expected)
  return 1
end

local function candidates(keys, args)
  local waits, gens, tenants = {}, {}, tonumber(args[3])
  for i = 1, tenants do waits[args[3 + i]] = keys[8 + i] end
  for i = 1, #keys - 8 - tenants do gens[args[3 + tenants + i]] = keys[8 + tenants + i] end
  return waits, gens
end

local function dispatch(keys, args)
  local k = {tasks = keys[1], ready = keys[2], tenants = keys[3], debt = keys[4], meta = keys[5],
    leases = keys[6], alive = keys[7], workers = keys[8]}
  local waits, gens = candidates(keys, args)
  local moved, more = 0, 0
  local free = live_slots(k, args[1]) - call('ZCARD', k.leases) - call('ZCARD', k.ready)
  while moved < free do
    local head = call('ZRANGE', k.tenants, 0, 0, 'WITHSCORES')
    if not head[1] then break end
    local wait = waits[head[1]]
    local id = wait and call('ZRANGE', wait, 0, 0)[1]
    if not id or not gens[id] then more = 1 break end
    moved = moved + dispatch_one(k, head[1], tonumber(head[2]), wait, id, gens[id])
  end
  if moved > 0 then call('PUBLISH', args[2], 't') end
  return {moved, more}
end

-- ---- pull: KEYS tasks ready leases meta alive workers, gen log...
-- ARGV worker numerics count lease_ms wait_ms, id...

-- Tokens that were made by other numerics belong to a worker with those, if one lives or may come
-- back: one that died starts again, one that leaves does not.
local function suits(k, gen, numerics, wait_ms)
  local f = call('HMGET', gen, 'n', 'num')
  if number(f[1]) == 0 or f[2] == numerics then return true end
  for _, worker in ipairs(call('ZRANGEBYSCORE', k.alive, now_ms() - wait_ms, '+inf')) do
    local record = call('HGET', k.workers, worker) or ''
    local leaving, name = string.match(record, '^%d+ %d+ %d+ (%d) (.*)$')
    if leaving == '0' and name == f[2] then return false end
  end
  return true
end

-- To the end of the line, as it is.
local function pass_on(k, id, gen)
  acknowledge(k, deliver_next(k, id))
  call('HSET', gen, 'entry', enqueue(k, id, call('HGET', gen, 'epoch')))
end

local function logged(log)
  local tokens = {}
  for i, entry in ipairs(call('XRANGE', log, '-', '+')) do tokens[i] = entry[2][2] end
  return table.concat(tokens, ' ')
end

-- The first lease: from now on reclaim watches over Redis.
local function lease(k, id, now, lease_ms)
  if call('ZCARD', k.leases) == 0 then call('HSET', k.meta, 'beat', now) end
  call('ZADD', k.leases, now + lease_ms, id)
end

local function take(k, id, gen, log, worker, numerics, lease_ms)
  local entry = deliver_next(k, id)
  lease(k, id, now_ms(), lease_ms)
  local g = gen_read(gen)
  call('HSET', gen, 'state', RUNNING, 'owner', worker, 'pnum', numerics, 'pn', g.n, 'entry', entry)
  call('HDEL', gen, 'given')
  local f = call('HMGET', gen, 'task', 'num', 'about')
  return {id, g.epoch, f[1] or '', logged(log), f[2] or '', g.cancel,
    {g.tenant, g.weight, g.prompt, g.expected, g.seed, g.retain, f[3] or ''}}
end

local function pull(keys, args)
  local k = {tasks = keys[1], ready = keys[2], leases = keys[3], meta = keys[4], alive = keys[5],
    workers = keys[6]}
  local place, passed, more, taken = {}, {}, 0, {}
  for i = 1, #args - 5 do place[args[5 + i]] = 5 + 2 * i end
  while #taken < tonumber(args[3]) do
    skip_tombstones(k)
    local id = call('ZRANGE', k.ready, 0, 0)[1]
    if not id or passed[id] then break end
    local at = place[id]
    if not at then more = 1 break end
    if number(call('HGET', keys[at], 'state')) ~= DISPATCHED then -- lost, perhaps submitted again
      acknowledge(k, deliver_next(k, id))
    elseif suits(k, keys[at], args[2], args[5]) then
      taken[#taken + 1] = take(k, id, keys[at], keys[at + 1], args[1], args[2], args[4])
    else
      passed[id] = true
      pass_on(k, id, keys[at])
    end
  end
  skip_tombstones(k)
  if next(passed) then trim(k) end
  return {more, taken}
end

-- ---- append: KEYS gen log leases   ARGV id epoch first lease_ms hint owner, token[/logprobs]...

-- Are the tokens of ARGV that are logged already the logged ones?
local function repeats(log, first, last, args)
  local entries = call('XRANGE', log, string.format('%.0f-0', first),
    string.format('%.0f-0', last))
  for i, entry in ipairs(entries) do
    if entry[2][2] ~= string.match(args[6 + i], '^%d+') then return false end
  end
  return #entries == last - first + 1
end

local function log_tokens(k, g, first, args, hint)
  local from = g.n - first + 2
  for i = from, #args - 6 do
    local token, logprobs = string.match(args[6 + i], '^(%d+)/?(.*)$')
    local entry = string.format('%.0f-0', first + i - 1)
    if logprobs == '' then
      call('XADD', k.log, entry, 't', token)
    else
      call('XADD', k.log, entry, 't', token, 'l', logprobs)
    end
  end
  if g.n == 0 then call('HSET', k.gen, 'num', call('HGET', k.gen, 'pnum')) end
  call('HSET', k.gen, 'n', first + #args - 7)
  call('PUBLISH', hint, string.format('%.0f 0 ', g.n + 1) .. table.concat(args, ' ', 6 + from))
  g.n = first + #args - 7
end

local function append(keys, args)
  local k = {gen = keys[1], log = keys[2], leases = keys[3]}
  local g, first, count = gen_read(k.gen), tonumber(args[3]), #args - 6
  if not g then return written(NOT_FOUND) end
  if not leased(g, tonumber(args[2]), args[6]) then return written(LEASE_LOST, g) end
  if g.cancel == 1 then return written(CANCELLED, g) end
  if first > g.n + 1 then return written(GAP, g) end
  local known = math.min(g.n, first + count - 1)
  if first <= known and not repeats(k.log, first, known, args) then return written(ABANDON, g) end
  if first + count - 1 > g.n then log_tokens(k, g, first, args, args[5]) end
  call('ZADD', k.leases, 'XX', now_ms() + args[4], args[1])
  return written(OK, g)
end

-- ---- finish: KEYS gen log leases tasks ready tenants debt meta
-- ARGV id epoch last reason hint sched model detail owner

local function finish(keys, args)
  local k = {gen = keys[1], log = keys[2], leases = keys[3], tasks = keys[4], ready = keys[5],
    tenants = keys[6], debt = keys[7], meta = keys[8], hint = args[5]}
  local g, reason = gen_read(k.gen), tonumber(args[4])
  if not g then return written(NOT_FOUND) end
  if g.state >= FINISHED and g.epoch == tonumber(args[2]) and g.owner ~= '' then
    return written(OK, g)
  end
  if not leased(g, tonumber(args[2]), args[9]) then return written(LEASE_LOST, g) end
  if reason ~= REASON_CANCELLED and tonumber(args[3]) ~= g.n then return written(GAP, g) end
  end_generation(k, g, state_of(reason), reason, args[8])
  release(k, g, args[1])
  settle(k, g, g.prompt + g.n)
  trim(k)
  reset_if_idle(k)
  call('PUBLISH', args[6], args[7])
  return written(OK, g)
end

-- ---- renew: KEYS gen leases   ARGV id epoch owner lease_ms (0: give back) sched model

local function renew(keys, args)
  local g = gen_read(keys[1])
  if not g then return written(NOT_FOUND) end
  if not leased(g, tonumber(args[2]), args[3]) then return written(LEASE_LOST, g) end
  local lease = tonumber(args[4])
  call('ZADD', keys[2], 'XX', lease == 0 and 0 or now_ms() + lease, args[1])
  if lease == 0 then
    call('HSET', keys[1], 'given', 1)
    call('PUBLISH', args[5], args[6])
  end
  return written(OK, g)
end

-- ---- reclaim: KEYS tasks ready leases meta tenants debt dead, gen log...
-- ARGV fruitless_max work sched model lease_ms, id hint...

-- Those that end later than a lease from now are of a clock that was set back.
local function shorten(k, deadline)
  for _, id in ipairs(call('ZRANGEBYSCORE', k.leases, '(' .. deadline, '+inf')) do
    call('ZADD', k.leases, deadline, id)
  end
end

-- A Redis that was away or stood still makes every lease look expired, though their workers could
-- not renew them. All reclaims come by here four times a lease while there are leases: where the last
-- was half a lease ago, or the clock was set, nothing expires until one lease from now. A shorter
-- absence leaves the other half to renew in.
local function was_silent(k, now, lease_ms)
  local f = call('HMGET', k.meta, 'beat', 'since')
  local silence, since = math.abs(now - number(f[1])), number(f[2])
  if silence > lease_ms / 2 then
    since = now
    call('HSET', k.meta, 'since', since)
    shorten(k, now + lease_ms)
  end
  if silence >= lease_ms / 6 then call('HSET', k.meta, 'beat', now) end
  return now - since < lease_ms
end

-- Deliveries in a row that came to nothing. A worker that gave back what it could have gone on with
-- (it ends, or lacks memory) is not to blame.
local function fruitless_of(k, g)
  if g.n > g.pn then return 0 end
  local f = call('HMGET', k.gen, 'given', 'num', 'pnum')
  if f[1] and (g.n == 0 or f[2] == f[3]) then return g.fruitless end
  return g.fruitless + 1
end

-- What nobody could run is kept for the operator.
local function bury(k, g, id, detail)
  call('XADD', k.dead, 'MAXLEN', DEAD_MAX, '*', 'g', id, 't', g.tenant, 'e', g.epoch, 'n', g.n,
    'd', detail)
end

-- True when the generation is queued again, false when it ended.
local function reclaim_one(k, g, id, fruitless_max)
  release(k, g, id)
  local fruitless = fruitless_of(k, g)
  if g.cancel == 0 and fruitless < fruitless_max then
    local entry = enqueue(k, id, g.epoch + 1)
    call('HSET', k.gen, 'state', DISPATCHED, 'epoch', g.epoch + 1, 'entry', entry, 'owner', '',
      'fruitless', fruitless)
    return true
  end
  local reason = g.cancel == 1 and REASON_CANCELLED or REASON_ERROR
  local detail = g.cancel == 1 and '' or 'given up: ' .. fruitless .. ' workers made no progress'
  call('HSET', k.gen, 'owner', '')
  if g.cancel == 0 then bury(k, g, id, detail) end
  end_generation(k, g, state_of(reason), reason, detail)
  settle(k, g, g.prompt + g.n)
  return false
end

-- Its hash, and with it the number of its entry, is lost. It may wait again by now.
local function forget(k, id)
  call('ZREM', k.leases, id)
  for _, entry in ipairs(call('XRANGE', k.tasks, '-', '+', 'COUNT', FORGET_MAX)) do
    if entry[2][2] == id then call('XACK', k.tasks, 'w', entry[1]) end
  end
  trim(k)
end

local function reclaim(keys, args)
  local k = {tasks = keys[1], ready = keys[2], leases = keys[3], meta = keys[4], tenants = keys[5],
    debt = keys[6], dead = keys[7]}
  local requeued, ended, now = 0, 0, now_ms()
  local expired = was_silent(k, now, tonumber(args[5])) and 0 or now -- what is given back has deadline 0
  for i = 1, (#args - 5) / 2 do
    local id = args[4 + 2 * i]
    local deadline = call('ZSCORE', k.leases, id)
    if deadline and tonumber(deadline) <= expired then
      k.gen, k.log, k.hint = keys[6 + 2 * i], keys[7 + 2 * i], args[5 + 2 * i]
      local g = gen_read(k.gen)
      if not g or g.state ~= RUNNING then
        forget(k, id)
      elseif reclaim_one(k, g, id, tonumber(args[1])) then
        requeued = requeued + 1
      else
        ended = ended + 1
      end
    end
  end
  if requeued + ended == 0 then return {0, 0} end
  trim(k)
  reset_if_idle(k)
  if requeued > 0 then call('PUBLISH', args[2], 't') end
  call('PUBLISH', args[3], args[4])
  return {requeued, ended}
end

-- ---- cancel: KEYS gen log wait tenants debt meta tasks ready leases
-- ARGV id hint sched model control tenant

local function leave_backlog(k, g, id)
  call('ZREM', k.wait, id)
  call('HINCRBY', k.meta, 'waiting', -1)
  if call('EXISTS', k.wait) == 1 then return end
  local start = tonumber(call('ZSCORE', k.tenants, g.tenant))
  tenant_leaves(k, g.tenant)
  if start > virtual_time(k.meta) then call('ZADD', k.debt, start, g.tenant) end
end

local function cancel_dispatched(k, g, id)
  call('ZREM', k.ready, id)
  settle(k, g, g.n > 0 and g.prompt + g.n or 0)
  skip_tombstones(k)
  trim(k)
end

local function cancel(keys, args)
  local k = {gen = keys[1], log = keys[2], wait = keys[3], tenants = keys[4], debt = keys[5],
    meta = keys[6], tasks = keys[7], ready = keys[8], leases = keys[9], hint = args[2]}
  local id, g = args[1], gen_read(k.gen)
  if not g then return {NOT_FOUND} end
  if g.tenant ~= args[6] then return redis.error_reply('ERR cancel: not the tenant of the task') end
  if g.state <= RUNNING then
    call('HSET', k.gen, 'cancel', 1)
    g.cancel = 1
  end
  if g.state == QUEUED or g.state == DISPATCHED then
    if g.state == QUEUED then leave_backlog(k, g, id) else cancel_dispatched(k, g, id) end
    end_generation(k, g, STATE_CANCELLED, REASON_CANCELLED, '')
    reset_if_idle(k)
    call('PUBLISH', args[3], args[4])
  elseif g.state == RUNNING then
    call('PUBLISH', args[5], 'c ' .. id)
  end
  return {OK, g.state, g.cancel, g.n, g.epoch, g.finish, g.tenant, g.seed, g.owner}
end

-- ---- restore: KEYS gen log leases tasks ready tenants debt meta wait
-- ARGV id epoch owner numerics lease_ms tenant weight prompt expected seed retain_s task about

-- May what its worker had taken before Redis lost it be given back to it? Epochs only grow, and of
-- two that have the same one the first to be known again keeps it.
local function is_behind(g, epoch, owner)
  if g.state >= FINISHED or g.epoch > epoch then return false end
  return g.state < RUNNING or g.epoch < epoch or g.owner == owner
end

local function recreate(k, args)
  call('HSET', k.gen, 'tenant', args[6], 'weight', args[7], 'prompt', args[8], 'expected', args[9],
    'seed', args[10], 'state', RUNNING, 'epoch', args[2], 'n', 0, 'retain', args[11],
    'task', args[12], 'about', args[13])
  return gen_read(k.gen)
end

local function take_out(k, g, id)
  if g.state == QUEUED then
    leave_backlog(k, g, id)
  elseif g.state == DISPATCHED then
    call('ZREM', k.ready, id)
    skip_tombstones(k)
  else
    release(k, g, id)
  end
end

local function restore(keys, args)
  local k = {gen = keys[1], log = keys[2], leases = keys[3], tasks = keys[4], ready = keys[5],
    tenants = keys[6], debt = keys[7], meta = keys[8], wait = keys[9]}
  local id, epoch, g = args[1], tonumber(args[2]), gen_read(k.gen)
  if g and (g.tenant ~= args[6] or not is_behind(g, epoch, args[3])) then
    return written(LEASE_LOST, g)
  end
  if g then take_out(k, g, id) else g = recreate(k, args) end
  settle(k, g, g.prompt + g.expected)
  lease(k, id, now_ms(), args[5])
  call('HSET', k.gen, 'state', RUNNING, 'epoch', epoch, 'owner', args[3], 'pnum', args[4],
    'pn', g.n, 'entry', 0, 'charged', g.prompt + g.expected)
  call('HDEL', k.gen, 'given')
  trim(k)
  return written(OK, g)
end

-- ---- beat: KEYS alive workers figures   ARGV worker record sched model figures

-- fx2_beat knows of no figures, and leaves those of the workers it forgets.
local function forget_figures(keys)
  if call('HLEN', keys[3]) <= call('HLEN', keys[2]) then return end
  for _, worker in ipairs(call('HKEYS', keys[3])) do
    if call('HEXISTS', keys[2], worker) == 0 then call('HDEL', keys[3], worker) end
  end
end

local function beat(keys, args)
  local now, known = now_ms(), call('HGET', keys[2], args[1])
  for _, dead in ipairs(call('ZRANGEBYSCORE', keys[1], '-inf', now - WORKER_KEPT_MS)) do
    call('ZREM', keys[1], dead)
    call('HDEL', keys[2], dead)
    call('HDEL', keys[3], dead)
  end
  forget_figures(keys)
  if not known and call('ZCARD', keys[1]) >= WORKERS_MAX then
    return redis.error_reply('FULL too many workers of this model')
  end
  call('ZADD', keys[1], now, args[1])
  call('HSET', keys[2], args[1], args[2])
  if args[5] == '' then
    call('HDEL', keys[3], args[1])
  else
    call('HSET', keys[3], args[1], args[5])
  end
  if known ~= args[2] then call('PUBLISH', args[3], args[4]) end
  return OK
end

-- ---- stats: KEYS alive workers leases ready meta figures   ARGV alive_ms, 1: with figures

local function stats(keys, args)
  local reply = {number(call('HGET', keys[5], 'waiting')), call('ZCARD', keys[4]),
    call('ZCARD', keys[3])}
  for _, worker in ipairs(call('ZRANGEBYSCORE', keys[1], now_ms() - args[1], '+inf')) do
    reply[#reply + 1] = worker
    reply[#reply + 1] = call('HGET', keys[2], worker) or ''
    reply[#reply + 1] = args[2] == '1' and call('HGET', keys[6], worker) or ''
  end
  return reply
end

-- Only submit is refused when Redis is out of memory: the others lead to memory coming free.
redis.register_function('fx3_submit', submit)
local function register(name, callback)
  redis.register_function{function_name = name, callback = callback, flags = {'allow-oom'}}
end
register('fx3_dispatch', dispatch)
register('fx3_pull', pull)
register('fx3_append', append)
register('fx3_finish', finish)
register('fx3_renew', renew)
register('fx3_reclaim', reclaim)
register('fx3_cancel', cancel)
register('fx3_restore', restore)
register('fx3_beat', beat)
redis.register_function{function_name = 'fx3_stats', callback = stats, flags = {'no-writes'}}
