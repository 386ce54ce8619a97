/* What one part of the system does to the others while it is away, full or refuses them: answers
 * that run go on, new ones are refused with a time to come again or wait, and all is well behind
 * it. */
#include <hiredis/hiredis.h>
#include <signal.h>
#include "tests/chaos/proxy.h"
#include "tests/e2e/suite.h"

#define PROMPT "It is a truth universally acknowledged,"
enum { TOKENS = 300, FEW = 8, CHUNKS = 3, STEP_MS = 30000, CUT_MS = 2500 };

static json_t *tokens(int count) {
    return json_pack("{s:i, s:b}", "max_tokens", count, "ignore_eos", 1);
}

static char *whole, *few; /* undisturbed */

static void begin(struct suite *suite, struct stream *stream) {
    MUST(stream_open(stream, suite, PROMPT, tokens(TOKENS), &err));
    MUST(stream_until(stream, CHUNKS, &err));
}

static void goes_on(struct stream *stream) {
    MUST(stream_rest(stream, &err));
    assert_string_equal(stream->text.at, whole);
    stream_close(stream);
}

static void assert_works(struct suite *suite) {
    auto_text text = suite_complete(suite, PROMPT, tokens(FEW));
    assert_string_equal(text, few);
}

static unsigned try(struct suite *suite) {
    char after[16] = "";
    auto_answer answer =
        suite_request(suite, "POST", "/v1/completions", suite_prompt(PROMPT, tokens(FEW)));
    if (answer.status == 503) assert_true(http_header(&answer.conn, "retry-after", after, 16));
    return answer.status;
}

static void redis_config(struct suite *suite, const char *name, const char *value) {
    redisContext *redis = redisConnectUnix(suite->redis.socket);
    assert_true(redis && !redis->err);
    redisReply *reply = redisCommand(redis, "CONFIG SET %s %s", name, value);
    if (!reply || reply->type == REDIS_REPLY_ERROR) { /* a password was set */
        freeReplyObject(reply);
        freeReplyObject(redisCommand(redis, "AUTH secret"));
        reply = redisCommand(redis, "CONFIG SET %s %s", name, value);
    }
    if (!reply || reply->type == REDIS_REPLY_ERROR) fail_msg("%s", reply ? reply->str : "Redis");
    freeReplyObject(reply);
    redisFree(redis);
}

/* -- Redis -- */

static void a_full_redis_refuses_the_new(void **state) {
    struct suite *suite = *state;
    auto_stream stream = {0};
    begin(suite, &stream);
    redis_config(suite, "maxmemory", "1");
    assert_int_equal(try(suite), 503);
    goes_on(&stream);
    redis_config(suite, "maxmemory", "0");
    assert_works(suite);
}

static void a_wrong_password_is_told(void **state) {
    struct suite *suite = *state;
    struct service *worker = &suite->workers[1];
    auto_http conn = {0};
    const struct http_request ready = {.method = "GET", .path = "/readyz"};
    process_stop(&worker->process);
    redis_config(suite, "requirepass", "secret");
    suite_service_start(suite, worker);
    WAIT_FOR(service_get(worker, "/livez") == 200, STEP_MS, "it does not live");
    (void)usleep(500000);
    assert_int_equal(service_get(worker, "/readyz"), 503);
    MUST(http_open(&conn, worker->admin, &err));
    MUST(http_send(&conn, &ready, &err));
    MUST(http_read_all(&conn, STEP_MS, &err));
    assert_non_null(strstr(conn.body.at, "Redis"));
    auto_text log = process_text(worker->process.out);
    assert_non_null(strstr(log, "NOAUTH"));
    assert_true(process_runs(&worker->process));
    redis_config(suite, "requirepass", "");
    suite_await_ready(worker);
    assert_works(suite);
}

/* -- cuts between Redis and the processes of one kind -- */

static const char *const cuttable[] = {"worker", "scheduler", "gateway"};
static struct link {
    char url[160];
    struct proxy *proxy;
} links[FX_TEST_COUNT(cuttable)][SUITE_MANY];
static const char *redis_socket;

static struct link *link_of(const char *program, uint32_t number) {
    for (size_t i = 0; i < FX_TEST_COUNT(cuttable); i++)
        if (strcmp(cuttable[i], program) == 0) return &links[i][number];
    return NULL;
}

static const char *path_of(const struct link *link) {
    return link->url + strlen("unix://");
}

static void mend(struct link *link) {
    if (*link->url && !link->proxy) link->proxy = proxy_start(path_of(link), redis_socket);
}

static const char *redis_url(const struct suite *suite, const char *program, uint32_t number) {
    struct link *link = link_of(program, number);
    redis_socket = suite->redis.socket;
    if (!link) return suite->redis.url;
    (void)snprintf(link->url, sizeof link->url, "unix://%s/cut-%s-%u", suite->redis.folder, program,
                   number);
    mend(link);
    return link->url;
}

static void cut(struct link *link) {
    if (!link->proxy) return;
    proxy_stop(link->proxy);
    (void)unlink(path_of(link));
    link->proxy = NULL;
}

static void all_are_well(struct suite *suite) {
    for (uint32_t i = 0; suite_service(suite, i); i++)
        suite_await_ready(suite_service(suite, i));
    assert_works(suite);
    for (uint32_t i = 0; i < SUITE_MANY; i++)
        WAIT_FOR(worker_is_free(&suite->workers[i]), STEP_MS, "worker %u holds on", i);
}

static void cut_for_a_while(struct suite *suite, struct link *of) {
    auto_stream stream = {0};
    begin(suite, &stream);
    for (size_t i = 0; i < SUITE_MANY; i++)
        cut(&of[i]);
    (void)usleep(CUT_MS * 1000);
    for (size_t i = 0; i < SUITE_MANY; i++)
        mend(&of[i]);
    goes_on(&stream);
    all_are_well(suite);
}

static void a_cut_to_redis_is_bridged(void **state) {
    for (size_t i = 0; i < FX_TEST_COUNT(cuttable); i++)
        cut_for_a_while(*state, links[i]);
}

/* -- services that die or freeze -- */

static struct service *tenant(struct suite *suite) {
    return &suite->tenant;
}
static struct service *slicer(struct suite *suite) {
    return &suite->slicer;
}
static struct service *scheduler(struct suite *suite) {
    return &suite->schedulers[0];
}

static const struct row {
    const char *name;
    struct service *(*service)(struct suite *suite);
    int signal;
    unsigned status; /* of a request meanwhile */
} rows[] = {
    {"tenant killed",         tenant,    SIGKILL, 503},
    {"tenant frozen",         tenant,    SIGSTOP, 503},
    {"slicer killed",         slicer,    SIGKILL, 200},
    {"slicer frozen",         slicer,    SIGSTOP, 200},
    {"only scheduler killed", scheduler, SIGKILL, 503},
    {"only scheduler frozen", scheduler, SIGSTOP, 503},
};

static void heal(struct suite *suite, struct service *service, int number) {
    if (number == SIGKILL)
        suite_service_start(suite, service);
    else
        process_signal(&service->process, SIGCONT);
    suite_await_ready(service);
}

/* Running answers do not need it; the tenant service is asked for a key that nobody knows yet. */
static void without_it(struct suite *suite, const struct row *row) {
    struct service *service = row->service(suite);
    auto_stream stream = {0};
    char key[SUITE_KEY_MAX], fresh[SUITE_KEY_MAX];
    suite_key_make(suite, fresh);
    begin(suite, &stream);
    process_signal(&service->process, row->signal);
    service->killed |= row->signal == SIGKILL;
    memcpy(key, suite->key, sizeof key);
    if (service == &suite->tenant) memcpy(suite->key, fresh, sizeof fresh);
    unsigned status = try(suite);
    memcpy(suite->key, key, sizeof key);
    goes_on(&stream);
    heal(suite, service, row->signal);
    print_message("- %s: %u\n", row->name, status);
    assert_int_equal(status, row->status);
    WAIT_FOR(try(suite) == 200, STEP_MS, "it does not come back");
    assert_works(suite);
}

static void answers_go_on_without_a_service(void **state) {
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        without_it(*state, &rows[i]);
}

static void undisturbed(void **state) {
    whole = suite_complete(*state, PROMPT, tokens(TOKENS));
    few = suite_complete(*state, PROMPT, tokens(FEW));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undisturbed),
        cmocka_unit_test(a_full_redis_refuses_the_new),
        cmocka_unit_test(a_wrong_password_is_told),
        cmocka_unit_test(a_cut_to_redis_is_bridged),
        cmocka_unit_test(answers_go_on_without_a_service),
    };
    int failed =
        suite_main("outages", tests, FX_TEST_COUNT(tests),
                   &(struct suite_opts){
                       .workers = SUITE_MANY,
                       .worker_env = WORDS("FX_BACKEND=ref", "FX_THREADS=1"), /* slowly */
                       /* One loop: each has connections of its own, that find out by themselves
                          that a service is back. */
                       .env = WORDS("FX_LEASE_MS=1500", "FX_RENEW_MS=400", "FX_HTTP_LOOPS=1"),
                       .redis_url = redis_url,
                   });
    for (size_t i = 0; i < FX_TEST_COUNT(cuttable); i++)
        for (size_t j = 0; j < SUITE_MANY; j++)
            cut(&links[i][j]);
    free(whole);
    free(few);
    return failed;
}
