#include "tests/chaos/cluster.h"
#include <hiredis/hiredis.h>
#include <signal.h>

enum { DIES_MS = 5000, CLEAN_MS = 15000, REDIS_DOWN_MS = 700, REDIS_STOPPED_MS = 4000 };

#define COUNTS                                                                                     \
    .workers = SUITE_MANY, .schedulers = SUITE_MANY, .gateways = SUITE_MANY,                       \
    .env = WORDS("FX_LEASE_MS=1500", "FX_RENEW_MS=400", "FX_GEN_RETAIN_S=120")
const struct suite_opts cluster_opts = {COUNTS, .worker_env = WORDS("FX_THREADS=1")};
const struct suite_opts cluster_small_opts = {
    COUNTS, .worker_env = WORDS("FX_THREADS=1", "FX_SLOTS_MAX=8", "FX_KV_MIB=1")};

struct suite cluster;

/* -- proxies -- */

static const char *const proxied[] = {"worker", "scheduler", "gateway"};
static struct proxy *proxies[FX_TEST_COUNT(proxied)][SUITE_MANY];

static int proxied_find(const char *program) {
    for (int i = 0; i < (int)FX_TEST_COUNT(proxied); i++)
        if (strcmp(proxied[i], program) == 0) return i;
    return -1;
}

static const char *redis_url(const struct suite *suite, const char *program, uint32_t number) {
    static char urls[FX_TEST_COUNT(proxied)][SUITE_MANY][128];
    int kind = proxied_find(program);
    if (kind < 0) return suite->redis.url;
    struct proxy **proxy = &proxies[kind][number];
    char *url = urls[kind][number];
    if (*proxy) return url;
    (void)snprintf(url, sizeof urls[0][0], "unix://%s/%s-%u", suite->redis.folder, program, number);
    *proxy = proxy_start(url + strlen("unix://"), suite->redis.socket);
    return url;
}

struct proxy *cluster_proxy(const struct service *service) {
    return proxies[proxied_find(service->program)][service->number];
}

void cluster_open(const struct suite_opts *opts) {
    struct suite_opts with = *opts;
    with.redis_url = redis_url;
    suite_open(&cluster, &with);
}

bool cluster_close(void) {
    bool well = suite_close(&cluster);
    for (size_t i = 0; i < FX_TEST_COUNT(proxied); i++)
        for (uint32_t j = 0; j < SUITE_MANY; j++) {
            if (proxies[i][j]) proxy_stop(proxies[i][j]);
            proxies[i][j] = NULL;
        }
    return well;
}

static const struct suite_opts *main_opts;

static int main_open(void **state) {
    (void)state;
    cluster_open(main_opts);
    return 0;
}

int cluster_main(const char *name, const struct CMUnitTest *tests, size_t count,
                 const struct suite_opts *opts) {
    main_opts = opts;
    int failed = _cmocka_run_group_tests(name, tests, count, main_open, NULL);
    failed += !*cluster.key; /* it did not even start */
    if (failed) suite_show(&cluster);
    failed += !cluster_close();
    return failed != 0;
}

/* -- blows -- */

static struct service *services_of(enum fault_target target) {
    switch (target) {
    case FAULT_WORKER: return cluster.workers;
    case FAULT_SCHEDULER: return cluster.schedulers;
    default: return cluster.gateways;
    }
}

/* Which of the two makes a call is chance, but for a worker's that has something to do. */
static bool either_will_do(const struct strike *strike) {
    const struct fault *fault = strike->fault;
    return fault->call && (fault->target != FAULT_WORKER || strcmp(fault->call, "pull") == 0);
}

static bool is_busy(const struct service *worker) {
    struct proxy_ids held;
    proxy_held(cluster_proxy(worker), &held);
    return held.count > 0;
}

static void victims_choose(struct strike *strike, uint32_t turn) {
    enum fault_target target = strike->fault->target;
    struct service *all = services_of(target);
    bool either = either_will_do(strike), one = target == FAULT_GATEWAY;
    if (target == FAULT_WORKER && !either && !is_busy(&all[turn % SUITE_MANY])) turn++;
    for (uint32_t i = 0; i < (either ? 2 : 1); i++) {
        strike->victims[i] = &all[(turn + (one ? 0 : i)) % SUITE_MANY];
        strike->callers[i] = one && either ? &cluster.schedulers[i] : strike->victims[i];
    }
}

static void struck(struct strike *strike, struct service *victim) {
    strike->victim = victim;
    victim->killed |= strike->fault->signal == SIGKILL;
}

static void redis_strike(struct strike *strike) {
    strike->at_us = fx_clock_us();
    if (strike->fault->signal == SIGKILL) {
        redis_fixture_kill(&cluster.redis);
        (void)usleep(REDIS_DOWN_MS * 1000);
        redis_fixture_restart(&cluster.redis, NULL);
    } else {
        assert_int_equal(kill(cluster.redis.pid, SIGSTOP), 0);
        (void)usleep(REDIS_STOPPED_MS * 1000);
        assert_int_equal(kill(cluster.redis.pid, SIGCONT), 0);
    }
}

/* Another append from round to round; of other calls there are few. */
static uint32_t later(const struct fault *fault, uint32_t turn) {
    return strcmp(fault->call, "append") == 0 ? turn % 11 : 0;
}

void strike_begin(struct strike *strike, const struct fault *fault, uint32_t turn) {
    *strike = (struct strike){.fault = fault};
    if (fault->target == FAULT_REDIS) {
        redis_strike(strike);
        return;
    }
    victims_choose(strike, turn);
    for (uint32_t i = 0; i < 2 && strike->callers[i] && fault->call; i++)
        proxy_arm(cluster_proxy(strike->callers[i]),
                  &(struct proxy_trap){.call = fault->call,
                                       .when = fault->when,
                                       .nth = fault->nth + later(fault, turn),
                                       .delay_ms = fault->delay_ms,
                                       .pid = strike->victims[i]->process.pid,
                                       .signal = fault->signal,
                                       .once = &strike->once});
    if (fault->call) return;
    proxy_held(cluster_proxy(strike->victims[0]), &strike->held);
    strike->at_us = fx_clock_us();
    process_signal(&strike->victims[0]->process, fault->signal);
    struck(strike, strike->victims[0]);
}

bool strike_done(struct strike *strike) {
    if (strike->at_us) return true;
    for (uint32_t i = 0; i < 2 && strike->callers[i]; i++) {
        strike->at_us = proxy_sprung(cluster_proxy(strike->callers[i]), &strike->held);
        if (!strike->at_us) continue;
        struck(strike, strike->victims[i]);
        return true;
    }
    return false;
}

void strike_give_up(struct strike *strike) {
    for (uint32_t i = 0; i < 2 && strike->callers[i]; i++)
        proxy_disarm(cluster_proxy(strike->callers[i]));
}

/* -- what is asked of Redis -- */

static redisReply *ask(const char *script) {
    redisContext *redis = redisConnectUnix(cluster.redis.socket);
    assert_true(redis && !redis->err);
    redisReply *reply = redisCommand(redis, "EVAL %s 0", script);
    if (!reply || reply->type == REDIS_REPLY_ERROR) fail_msg("%s", reply ? reply->str : "Redis");
    redisFree(redis);
    return reply;
}

long long cluster_log_entries(const struct proxy_ids *ids) {
    long long sum = 0;
    for (uint32_t i = 0; i < ids->count; i++) {
        char script[160];
        (void)snprintf(script, sizeof script,
                       "return redis.call('XLEN', redis.call('KEYS', 'fx:*:log:%s')[1])",
                       ids->at[i]);
        redisReply *reply = ask(script);
        sum += reply->integer;
        freeReplyObject(reply);
    }
    return sum;
}

/* "": nothing is queued, leased, delivered or kept for ever. */
static void redis_left(char *out, size_t cap) {
    static const char script[] =
        "local left = '' "
        "local function tell(what, count) "
        "  if count > 0 then left = left .. count .. ' ' .. what .. '; ' end end "
        "local function each(pattern, fn) "
        "  local sum = 0 for _, key in ipairs(redis.call('KEYS', pattern)) do "
        "  sum = sum + fn(key) end return sum end "
        "local function card(key) return redis.call('ZCARD', key) end "
        "tell('leases', each('fx:*:leases', card)) "
        "tell('dispatched', each('fx:*:ready', card)) "
        "tell('backlogs', each('fx:*:wait:*', card)) "
        "tell('waiting', each('fx:*:meta', function(key) "
        "  return tonumber(redis.call('HGET', key, 'waiting') or 0) end)) "
        "tell('deliveries', each('fx:*:tasks', function(key) "
        "  return redis.call('XPENDING', key, 'w')[1] end)) "
        "local function kept(key) return redis.call('TTL', key) < 0 and 1 or 0 end "
        "tell('generations that have not ended', each('fx:*:gen:*', kept)) "
        "tell('logs kept for ever', each('fx:*:log:*', kept)) "
        "return left";
    redisReply *reply = ask(script);
    (void)snprintf(out, cap, "%s", reply->str);
    freeReplyObject(reply);
}

/* -- healing -- */

/* The logs of what it held grow no more: all it had on its way is refused. */
static void awakened(const struct strike *strike, long long logged) {
    WAIT_FOR(worker_is_free(strike->victim), CLEAN_MS, "%s woke and holds on",
             strike->victim->process.name);
    assert_int_equal(cluster_log_entries(&strike->held), logged);
}

void strike_heal(struct strike *strike) {
    struct service *victim = strike->victim;
    strike_give_up(strike);
    if (!victim) return;
    struct proxy *proxy = cluster_proxy(victim);
    if (strike->fault->signal == SIGKILL) {
        assert_true(process_wait(&victim->process, DIES_MS));
        proxy_forget(proxy);
        suite_service_start(&cluster, victim);
        suite_await_ready(victim);
        return;
    }
    bool worker = strike->fault->target == FAULT_WORKER;
    long long logged = worker ? cluster_log_entries(&strike->held) : 0;
    proxy_release(proxy);
    process_signal(&victim->process, SIGCONT);
    suite_await_ready(victim);
    if (worker) awakened(strike, logged);
    proxy_forget(proxy);
}

/* -- nothing is left -- */

static bool is_clean(char *why, size_t cap) {
    for (uint32_t i = 0; i < cluster.opts.workers; i++)
        if (!worker_is_free(&cluster.workers[i])) {
            (void)snprintf(why, cap, "worker %u has slots or KV blocks in use", i);
            return false;
        }
    redis_left(why, cap);
    return !*why;
}

void cluster_await_clean(void) {
    char why[512];
    WAIT_FOR(is_clean(why, sizeof why), CLEAN_MS, "left: %s", why);
}

double cluster_reclaimed(void) {
    double sum = 0;
    for (uint32_t i = 0; i < cluster.opts.schedulers; i++)
        sum += service_metric(&cluster.schedulers[i], "fx_scheduler_reclaimed_total");
    return sum;
}

uint64_t cluster_preemptions(void) {
    static pid_t pids[SUITE_MANY];
    static double counted[SUITE_MANY];
    double more = 0;
    for (uint32_t i = 0; i < cluster.opts.workers; i++) {
        const struct service *worker = &cluster.workers[i];
        double now = service_metric(worker, "fx_worker_preemptions_total");
        more += pids[i] == worker->process.pid ? now - counted[i] : now;
        pids[i] = worker->process.pid;
        counted[i] = now;
    }
    return (uint64_t)more;
}
