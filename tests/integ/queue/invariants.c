#include "tests/integ/queue/invariants.h"

static const char invariants[] =
    "local m, call, pending, waiting = 'fx:{m7}:', redis.call, 0, 0\n"
    "local of = {[0] = 0, 0, 0, 0, 0, 0, 0}\n"
    "local function must(ok, what) if not ok then error(what, 0) end end\n"
    "local function meta(field) return call('HGET', m .. 'meta', field) end\n"
    "local function log(n, id, ended, count)\n"
    "  local entries = call('XRANGE', m .. 'log:' .. id, '-', '+')\n"
    "  must(#entries == count + (ended and 1 or 0), 'entries of the log of ' .. n)\n"
    "  for i = 1, count do\n"
    "    must(entries[i][1] == i .. '-0' and tonumber(entries[i][2][2]) == n * 100 + i,\n"
    "      'token ' .. i .. ' of ' .. n)\n"
    "  end\n"
    "end\n"
    "for n = 1, tonumber(ARGV[1]) do\n"
    "  local id, tenant = string.format('ab%022d%08x', 0, n), n % tonumber(ARGV[2]) + 1\n"
    "  local f = call('HMGET', m .. 'gen:' .. id, 'state', 'n', 'entry')\n"
    "  local state, at = tonumber(f[1] or 0), call('ZSCORE', m .. 'ready', id)\n"
    "  local is = ' of ' .. n .. ', state ' .. state\n"
    "  of[state] = of[state] + 1\n"
    "  must((state == 1) == (call('ZSCORE', m .. 'wait:' .. tenant, id) ~= false), 'wait' .. is)\n"
    "  must((state == 2) == (at ~= false), 'ready' .. is)\n"
    "  must((state == 3) == (call('ZSCORE', m .. 'leases', id) ~= false), 'lease' .. is)\n"
    "  if state == 2 then\n"
    "    local entry = call('XRANGE', m .. 'tasks', at .. '-0', at .. '-0')[1]\n"
    "    must(entry and entry[2][2] == id and f[3] == at, 'entry' .. is)\n"
    "  elseif state == 3 and f[3] ~= '0' then\n"
    "    local own = f[3] .. '-0'\n"
    "    must(#call('XPENDING', m .. 'tasks', 'w', own, own, 1) == 1, 'pending' .. is)\n"
    "    pending = pending + 1\n"
    "  end\n"
    "  log(n, id, state > 3, tonumber(f[2] or 0))\n"
    "end\n"
    "local v = tonumber(meta('v') or 0)\n"
    "for tenant = 1, tonumber(ARGV[2]) do\n"
    "  local backlog = call('ZCARD', m .. 'wait:' .. tenant)\n"
    "  local tag = call('ZSCORE', m .. 'tenants', tenant)\n"
    "  local debt, from = call('ZSCORE', m .. 'debt', tenant), meta('from:' .. tenant)\n"
    "  waiting = waiting + backlog\n"
    "  must((backlog > 0) == (tag ~= false), 'tag of tenant ' .. tenant)\n"
    "  must((backlog > 0) == (from ~= false), 'begin of tenant ' .. tenant)\n"
    "  must(not tag or tonumber(tag) >= tonumber(from), 'credit of tenant ' .. tenant)\n"
    "  must(not debt or (not tag and tonumber(debt) > v), 'debt of tenant ' .. tenant)\n"
    "end\n"
    "must(waiting == tonumber(meta('waiting') or 0), 'count of waiting')\n"
    "local ready = call('ZRANGE', m .. 'ready', 0, 0, 'WITHSCORES')\n"
    "if waiting + call('ZCARD', m .. 'leases') == 0 and not ready[1] then\n"
    "  must(not meta('v') and call('EXISTS', m .. 'debt') == 0, 'idle')\n"
    "end\n"
    "if call('EXISTS', m .. 'tasks') == 0 then return {of[1], of[2], of[3]} end\n"
    "local group, is = call('XINFO', 'GROUPS', m .. 'tasks')[1], {}\n"
    "for i = 1, #group, 2 do is[group[i]] = group[i + 1] end\n"
    "must(is.pending == pending, 'entries pending')\n"
    "local ahead = call('XRANGE', m .. 'tasks', '(' .. is['last-delivered-id'], '+')\n"
    "must(is.lag == #ahead, 'lag ' .. tostring(is.lag))\n"
    "must((ahead[1] and ahead[1][1]) == (ready[1] and ready[2] .. '-0'), 'next in line')\n"
    "return {of[1], of[2], of[3]}";

/* What autoscalers go by, against each generation's own state. */
static void check_stats(struct rig *rig, const redisReply *states) {
    struct fx_queue_stats stats = rig_stats(rig);
    long long queued = states->element[0]->integer, dispatched = states->element[1]->integer;
    assert_int_equal(stats.backlog, queued);
    assert_int_equal(stats.waiting, queued + dispatched);
    assert_int_equal(stats.running, states->element[2]->integer);
}

void rig_check(struct rig *rig, uint32_t gens, uint32_t tenants) {
    fx_error err = {0};
    redisReply *reply = NULL;
    bool ok = fx_redis_sync(rig->redis, 3000, &reply, &err, "EVAL %s 0 %d %d", invariants,
                            (int)gens, (int)tenants);
    if (!ok) print_error("%s\n", err.text);
    assert_true(ok);
    check_stats(rig, reply);
    freeReplyObject(reply);
}
