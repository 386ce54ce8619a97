/* A request is cancelled in each phase of its life, by leaving and by asking for it, over HTTP and
 * gRPC: it ends once, as cancelled (or as what it was when that came first), no token is made any
 * more, and worker, queue and rate limits are as they were. Hang-ups of one choice in queue,
 * prefill and decode, with their times, are in test_hang_up.c. */
#include <hiredis/hiredis.h>
#include <signal.h>
#include "common/queue/queue.h"
#include "tests/chaos/cluster.h"
#include "tests/e2e/canceller.h"

#define PROMPT "It is a truth universally acknowledged,"
enum {
    LONG = 900, /* tokens of an answer: seconds */
    SHORT = 6,
    LONG_PROMPT = 900,
    RACES = 8, /* a row of a race */
    STEP_MS = 30000,
    STILL_MS = 100,
    ID_LEN = 2 * FX_GEN_ID_BYTES,
    NAME_LEN = 64,
    GENERATIONS_MAX = 4,
    KNOWN_MAX = 512,
};

enum phase {
    QUEUED,     /* both slots are taken */
    DISPATCHED, /* to a worker that is frozen */
    DELIVERED,  /* it pulled, and froze before it read the answer */
    PREFILL,
    DECODE,
    FINISH,  /* about when the last token comes */
    RECLAIM, /* its worker was killed `ms` ago, and leases are of CLUSTER_LEASE_MS */
};

static const struct row {
    const char *name;
    enum phase phase;
    enum cancel_way way;
    uint32_t ms;
} rows[] = {
    {"queued, POST",            QUEUED,     POST_STREAM,  0                      },
    {"queued, POST, whole",     QUEUED,     POST_WHOLE,   0                      },
    {"queued, twice",           QUEUED,     POST_TWICE,   0                      },
    {"queued, left, n=2",       QUEUED,     LEAVE_TWO,    0                      },
    {"queued, gRPC",            QUEUED,     GRPC,         0                      },
    {"dispatched, left",        DISPATCHED, LEAVE_STREAM, 0                      },
    {"dispatched, left, whole", DISPATCHED, LEAVE_WHOLE,  0                      },
    {"dispatched, POST, n=2",   DISPATCHED, POST_TWO,     0                      },
    {"dispatched, twice",       DISPATCHED, POST_TWICE,   0                      },
    {"dispatched, gRPC",        DISPATCHED, GRPC,         0                      },
    {"delivered, left",         DELIVERED,  LEAVE_STREAM, 0                      },
    {"delivered, left, whole",  DELIVERED,  LEAVE_WHOLE,  0                      },
    {"delivered, POST",         DELIVERED,  POST_STREAM,  0                      },
    {"delivered, twice",        DELIVERED,  POST_TWICE,   0                      },
    {"delivered, gRPC",         DELIVERED,  GRPC,         0                      },
    {"prefill, POST",           PREFILL,    POST_STREAM,  0                      },
    {"prefill, twice",          PREFILL,    POST_TWICE,   0                      },
    {"prefill, left, n=2",      PREFILL,    LEAVE_TWO,    0                      },
    {"prefill, gRPC",           PREFILL,    GRPC,         0                      },
    {"decode, POST",            DECODE,     POST_STREAM,  0                      },
    {"decode, POST, whole",     DECODE,     POST_WHOLE,   0                      },
    {"decode, POST, n=2",       DECODE,     POST_TWO,     0                      },
    {"decode, twice",           DECODE,     POST_TWICE,   0                      },
    {"decode, left, n=2",       DECODE,     LEAVE_TWO,    0                      },
    {"decode, gRPC",            DECODE,     GRPC,         0                      },
    {"the finish, left",        FINISH,     LEAVE_STREAM, 0                      },
    {"the finish, POST",        FINISH,     POST_STREAM,  0                      },
    {"the finish, POST, whole", FINISH,     POST_WHOLE,   0                      },
    {"the finish, gRPC",        FINISH,     GRPC,         0                      },
    {"a reclaim, left at once", RECLAIM,    LEAVE_STREAM, 0                      },
    {"a reclaim, POST before",  RECLAIM,    POST_STREAM,  CLUSTER_LEASE_MS - 100 },
    {"a reclaim, gRPC behind",  RECLAIM,    GRPC,         CLUSTER_LEASE_MS + 100 },
    {"a reclaim, twice, after", RECLAIM,    POST_TWICE,   CLUSTER_LEASE_MS + 1000},
};

/* A generation of the request, in Redis. */
struct generation {
    char key[96], id[ID_LEN + 1];
};

struct trying {
    const struct row *row;
    redisContext *redis;
    struct service *worker;
    struct cancel_ask ask;
    struct generation at[GENERATIONS_MAX];
    uint32_t count;
    double decoded;      /* before it */
    char name[NAME_LEN]; /* of the answer */
};

static char *next_text;                    /* of the request that comes after each row */
static struct canceller canceller, holder; /* closed after a failure too */

static struct {
    uint32_t count;
    char at[KNOWN_MAX][ID_LEN + 1]; /* generations of earlier requests that Redis still has */
} known;

/* -- Redis -- */

static redisReply *ask(redisContext *redis, const char *format, const char *word) {
    redisReply *reply = redisCommand(redis, format, word);
    if (!reply || reply->type == REDIS_REPLY_ERROR) fail_msg("%s", reply ? reply->str : "Redis");
    return reply;
}

static long long number(redisContext *redis, const char *format, const char *word) {
    redisReply *reply = ask(redis, format, word);
    long long value =
        reply->type == REDIS_REPLY_STRING ? strtoll(reply->str, NULL, 10) : reply->integer;
    freeReplyObject(reply);
    return value;
}

/* Summed over the keys of a pattern. */
static long long sum_of(redisContext *redis, const char *format, const char *pattern) {
    long long sum = 0;
    redisReply *keys = ask(redis, "KEYS %s", pattern);
    for (size_t i = 0; i < keys->elements; i++)
        sum += number(redis, format, keys->element[i]->str);
    freeReplyObject(keys);
    return sum;
}

static bool is_waiting(struct trying *trying) {
    return sum_of(trying->redis, "ZCARD %s", "fx:*:wait:*") > 0;
}

static const char *id_of(const char *key) {
    return strstr(key, ":gen:") + strlen(":gen:");
}

static void known_read(struct trying *trying) {
    redisReply *keys = ask(trying->redis, "KEYS %s", "fx:*:gen:*");
    assert_in_range(keys->elements, 0, KNOWN_MAX);
    known.count = (uint32_t)keys->elements;
    for (uint32_t i = 0; i < known.count; i++)
        (void)snprintf(known.at[i], sizeof known.at[i], "%s", id_of(keys->element[i]->str));
    freeReplyObject(keys);
}

static bool is_known(const char *id) {
    for (uint32_t i = 0; i < known.count; i++)
        if (strcmp(known.at[i], id) == 0) return true;
    return false;
}

/* The generations of the request, choice 0 first. */
static bool generations_find(struct trying *trying) {
    redisReply *keys = ask(trying->redis, "KEYS %s", "fx:*:gen:*");
    uint32_t want = cancel_choices(trying->ask.way);
    trying->count = 0;
    for (size_t i = 0; i < keys->elements && trying->count < GENERATIONS_MAX; i++) {
        const char *key = keys->element[i]->str, *id = id_of(key);
        if (is_known(id)) continue;
        struct generation *found = &trying->at[trying->count++];
        (void)snprintf(found->key, sizeof found->key, "%s", key);
        (void)snprintf(found->id, sizeof found->id, "%s", id);
    }
    freeReplyObject(keys);
    if (trying->count == 2 && trying->at[0].id[ID_LEN - 1] > trying->at[1].id[ID_LEN - 1]) {
        struct generation first = trying->at[1];
        trying->at[1] = trying->at[0];
        trying->at[0] = first;
    }
    return trying->count == want;
}

static void name_make(struct trying *trying) {
    unsigned long model = strtoul(trying->at[0].key + strlen("fx:{m"), NULL, 10);
    (void)snprintf(trying->name, sizeof trying->name, "cmpl-%s%08lx", trying->at[0].id, model);
}

static enum fx_gen_state state_of(struct trying *trying, uint32_t choice) {
    return (enum fx_gen_state)number(trying->redis, "HGET %s state", trying->at[choice].key);
}

static bool all_in(struct trying *trying, enum fx_gen_state state) {
    for (uint32_t i = 0; i < trying->count; i++)
        if (state_of(trying, i) != state) return false;
    return true;
}

static bool all_ended(struct trying *trying) {
    for (uint32_t i = 0; i < trying->count; i++)
        if (state_of(trying, i) < FX_GEN_FINISHED) return false;
    return true;
}

static long long logged(struct trying *trying) {
    long long sum = 0;
    for (uint32_t i = 0; i < trying->count; i++)
        sum += number(trying->redis, "HGET %s n", trying->at[i].key);
    return sum;
}

/* -- into the phase -- */

static double metric(const struct trying *trying, const char *name) {
    return service_metric(trying->worker, name);
}

static double decoded(const struct trying *trying) {
    return metric(trying, "fx_worker_tokens_decoded_total");
}

/* Both slots. */
static void hold(struct trying *trying) {
    canceller_begin(&holder, &cluster, &(struct cancel_ask){PROMPT, LONG, LEAVE_TWO});
    trying->ask.way = LEAVE_TWO;
    WAIT_FOR(generations_find(trying) && all_in(trying, FX_GEN_RUNNING), STEP_MS, "no holder");
    known_read(trying);
    trying->ask.way = trying->row->way;
}

static void before(struct trying *trying) {
    pid_t pid = trying->worker->process.pid;
    trying->decoded = decoded(trying);
    known_read(trying);
    if (trying->row->phase == QUEUED) hold(trying);
    if (trying->row->phase == DISPATCHED) process_signal(&trying->worker->process, SIGSTOP);
    if (trying->row->phase != DELIVERED) return;
    const struct proxy_trap trap = {
        .call = "pull", .when = PROXY_AFTER, .nth = 1, .pid = pid, .signal = SIGSTOP};
    proxy_arm(cluster_proxy(trying->worker), &trap);
}

static void worker_kill(struct trying *trying) {
    process_signal(&trying->worker->process, SIGKILL);
    assert_true(process_wait(&trying->worker->process, STEP_MS));
    trying->worker->killed = true;
    proxy_forget(cluster_proxy(trying->worker));
    (void)usleep(trying->row->ms * 1000);
}

static bool is_reached(struct trying *trying, uint32_t try) {
    struct proxy_ids held;
    switch (trying->row->phase) {
    case QUEUED: return is_waiting(trying);
    case DISPATCHED: return all_in(trying, FX_GEN_DISPATCHED);
    case DELIVERED:
        return proxy_sprung(cluster_proxy(trying->worker), &held) && all_in(trying, FX_GEN_RUNNING);
    case PREFILL: return metric(trying, "fx_worker_running") > 0;
    case FINISH: return logged(trying) >= 1 + try % SHORT;
    default: return decoded(trying) >= trying->decoded + 3;
    }
}

static void reach(struct trying *trying, uint32_t try) {
    WAIT_FOR(generations_find(trying), STEP_MS, "it is not submitted");
    WAIT_FOR(is_reached(trying, try), STEP_MS, "its phase does not come");
    if (trying->row->phase == RECLAIM) worker_kill(trying);
}

/* -- and after -- */

/* It wakes, and reads what it was sent before, and after. */
static void wake(struct trying *trying) {
    proxy_release(cluster_proxy(trying->worker));
    process_signal(&trying->worker->process, SIGCONT);
    suite_await_ready(trying->worker);
}

/* How it ended, without its worker where that is not needed. */
static bool ended(struct trying *trying) {
    enum phase phase = trying->row->phase;
    if (phase == DELIVERED) wake(trying);
    WAIT_FOR(all_ended(trying), STEP_MS, "it has not ended");
    bool finished = all_in(trying, FX_GEN_FINISHED);
    assert_true(finished ? phase == FINISH : all_in(trying, FX_GEN_CANCELLED));
    if (phase < PREFILL && phase != DELIVERED) assert_int_equal(logged(trying), 0);
    if (phase == DISPATCHED) wake(trying);
    if (phase == RECLAIM) suite_worker_start(&cluster, trying->worker->number);
    return finished;
}

static void check_still(struct trying *trying) {
    long long log = logged(trying);
    double made = decoded(trying);
    (void)usleep(STILL_MS * 1000);
    assert_int_equal(logged(trying), log);
    assert_true(decoded(trying) == made);
}

static bool limits_free(struct trying *trying) {
    return sum_of(trying->redis, "HLEN %s", "fx:*:limit:*:holds") == 0 &&
           sum_of(trying->redis, "ZCARD %s", "fx:*:limit:*:leases") == 0;
}

/* What an autoscaler sees of the queue; 0: nothing. A lag that is not known is no number. */
static long long lag(struct trying *trying) {
    redisReply *keys = ask(trying->redis, "KEYS %s", "fx:*:tasks");
    assert_int_equal(keys->elements, 1);
    redisReply *groups = ask(trying->redis, "XINFO GROUPS %s", keys->element[0]->str);
    redisReply *group = groups->element[0];
    assert_string_equal(group->element[group->elements - 2]->str, "lag");
    assert_int_equal(group->element[group->elements - 1]->type, REDIS_REPLY_INTEGER);
    long long value = group->element[group->elements - 1]->integer;
    freeReplyObject(groups);
    freeReplyObject(keys);
    return value;
}

static void check_back(struct trying *trying) {
    cluster_await_clean();
    assert_int_equal(lag(trying), 0);
    WAIT_FOR(limits_free(trying), STEP_MS, "the key's limits hold on");
    auto_text text = suite_complete(&cluster, PROMPT, json_pack("{s:i}", "max_tokens", SHORT));
    assert_string_equal(text, next_text);
    cluster_await_clean();
}

/* -- a try -- */

static void ask_make(struct trying *trying, char prompt[LONG_PROMPT + 1]) {
    bool prefill = trying->row->phase == PREFILL;
    memset(prompt, 'x', LONG_PROMPT);
    prompt[LONG_PROMPT] = 0;
    trying->ask = (struct cancel_ask){
        prefill ? prompt : PROMPT, trying->row->phase == FINISH ? SHORT : LONG, trying->row->way};
}

static bool try_once(struct trying *trying, uint32_t try) {
    char prompt[LONG_PROMPT + 1];
    ask_make(trying, prompt);
    before(trying);
    canceller_begin(&canceller, &cluster, &trying->ask);
    reach(trying, try);
    name_make(trying);
    canceller_cancel(&canceller, trying->name);
    bool finished = ended(trying);
    canceller_check(&canceller, finished);
    canceller_close(&canceller);
    canceller_close(&holder);
    WAIT_FOR(worker_is_free(trying->worker), STEP_MS, "its worker holds on");
    check_still(trying);
    check_back(trying);
    return finished;
}

static void a_cancel_leaves_nothing(void **state) {
    const struct row *row = *state;
    uint32_t tries = row->phase == FINISH ? RACES : 1, finished = 0;
    struct trying trying = {.row = row, .worker = &cluster.workers[0]};
    trying.redis = redisConnectUnix(cluster.redis.socket);
    assert_true(trying.redis && !trying.redis->err);
    for (uint32_t try = 0; try < tries; try++)
        finished += try_once(&trying, try);
    if (row->phase == FINISH) print_message("%u of %u finished before\n", finished, tries);
    redisFree(trying.redis);
}

static int close_all(void **state) {
    struct service *worker = &cluster.workers[0];
    (void)state;
    canceller_close(&canceller);
    canceller_close(&holder);
    proxy_release(cluster_proxy(worker));
    if (process_runs(&worker->process)) process_signal(&worker->process, SIGCONT);
    return 0;
}

/* Nobody's name, no name, another model's. */
static void an_unknown_id_is_404(void **state) {
    static const char *const names[] = {
        "cmpl-0123456789abcdef0123456789abcdef01234567",
        "cmpl-0123456789abcdef0123456789abcdef",
        "chatcmpl-0",
        "x",
    };
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(names); i++)
        assert_int_equal(cancel_post(&cluster, names[i]), 404);
}

/* A key with limits, so that there is something to give back. */
static void prepare(void **state) {
    (void)state;
    auto_text said = suite_cli_ok(&cluster, WORDS("keys", "create", "--tenant", "default", "--rpm",
                                                  "100000", "--tpm", "10000000", "--streams", "4"));
    const char *at = strstr(said, "fx-");
    assert_non_null(at);
    (void)snprintf(cluster.key, sizeof cluster.key, "%.*s", (int)strcspn(at, "\r\n "), at);
    next_text = suite_complete(&cluster, PROMPT, json_pack("{s:i}", "max_tokens", SHORT));
}

int main(void) {
    struct CMUnitTest tests[FX_TEST_COUNT(rows) + 2] = {cmocka_unit_test(prepare),
                                                        cmocka_unit_test(an_unknown_id_is_404)};
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i + 2] = (struct CMUnitTest){rows[i].name, a_cancel_leaves_nothing, NULL, close_all,
                                           (void *)(uintptr_t)&rows[i]};
    const struct suite_opts opts = {
        .env = WORDS("FX_LEASE_MS=1500", "FX_RENEW_MS=400", "FX_GEN_RETAIN_S=60"),
        .worker_env = WORDS("FX_BACKEND=ref", /* slowly */ "FX_THREADS=1", "FX_SLOTS_MAX=2"),
    };
    int failed = cluster_main("cancel", tests, FX_TEST_COUNT(tests), &opts);
    free(next_text);
    return failed;
}
