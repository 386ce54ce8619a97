/* Every service speaks TLS to Redis, as the user that docs/redis.acl gives it and no more. What
 * they do together works, and Redis has refused none of them anything. */
#include <hiredis/hiredis.h>
#include "tests/e2e/herd.h"
#include "tests/integ/rpc/certificates.h"

enum { HERD = 6, TOKENS = 60, LIMIT = 1000000, STEP_MS = 10000 };

static char folder[64], url[256], ca_variable[96];
static const char *const *redis_arguments;
static uint16_t port;

static const char *url_of(const struct suite *suite, const char *program, uint32_t number) {
    (void)suite, (void)number;
    (void)snprintf(url, sizeof url, "rediss://%s:%s-password@localhost:%u", program, program, port);
    return url;
}

/* As the operator: the file's only user with a right to look. */
static redisContext *dial(const struct suite *suite) {
    redisContext *redis = redisConnectUnix(suite->redis.socket);
    assert_true(redis && !redis->err);
    redisReply *reply = redisCommand(redis, "AUTH operator test");
    assert_string_equal(reply->str, "OK");
    freeReplyObject(reply);
    return redis;
}

static void acl_copy(char *path, size_t cap) {
    char out[256], script[256];
    (void)snprintf(path, cap, "%s/users.acl", folder);
    (void)snprintf(script, sizeof script,
                   "cp '%s/docs/redis.acl' \"$0\" && echo 'user operator on >test ~* &* +@all' "
                   ">>\"$0\"",
                   FX_SOURCE_DIR);
    assert_int_equal(shell(script, path, out, sizeof out), 0);
}

/* What an answer that was not streamed costs and who may ask: limits are looked at and kept. */
static void limits_set(struct suite *suite) {
    char limit[16];
    (void)snprintf(limit, sizeof limit, "%d", LIMIT);
    free(suite_cli_ok(suite, WORDS("tenants", "limit", "default", "--tpm", limit)));
}

static void all_works(void **state) {
    struct suite *suite = *state;
    auto_herd want = {0}, got = {0};
    limits_set(suite);
    herd_send(&want, suite, 0, HERD, TOKENS);
    herd_rest(&want);
    herd_send(&got, suite, 0, HERD, TOKENS);
    herd_rest(&got);
    herd_equal(&got, &want);
}

static void a_hang_up_cancels(void **state) {
    struct suite *suite = *state;
    auto_stream stream = {0};
    MUST(stream_open(&stream, suite, "It was", json_pack("{s:i}", "max_tokens", 900), &err));
    MUST(stream_until(&stream, 3, &err));
    stream_close(&stream);
    for (uint32_t i = 0; i < suite->opts.workers; i++)
        WAIT_FOR(worker_is_free(&suite->workers[i]), STEP_MS, "the slot stays taken");
}

/* Reclaim's and resume's rights: a worker dies in mid-stream. */
static void a_death(void **state) {
    struct suite *suite = *state;
    auto_herd want = {0}, got = {0};
    herd_send(&want, suite, 0, HERD, 10 * TOKENS);
    herd_rest(&want);
    herd_send(&got, suite, 0, HERD, 10 * TOKENS);
    herd_begun(&got);
    process_signal(&suite->workers[0].process, SIGKILL);
    suite->workers[0].killed = true;
    herd_rest(&got);
    herd_equal(&got, &want);
    suite_worker_start(suite, 0);
}

static bool answers(struct suite *suite) {
    auto_answer answer = suite_request(suite, "POST", "/v1/completions", suite_prompt("It", NULL));
    if (answer.status == 401) fail_msg("the key is forgotten: %s", answer.conn.body.at);
    return answer.status == 200;
}

/* What Redis has on disk is there again: its AOF is read as the user `default`, who may do
 * everything and whom nobody can be. */
static void a_restart_of_redis(void **state) {
    struct suite *suite = *state;
    redis_fixture_kill(&suite->redis);
    redis_fixture_restart(&suite->redis, redis_arguments);
    WAIT_FOR(answers(suite), STEP_MS, "no answer since Redis restarted");
    redisContext *redis = redisConnectUnix(suite->redis.socket);
    assert_true(redis && !redis->err);
    redisReply *reply = redisCommand(redis, "DBSIZE");
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    assert_non_null(strstr(reply->str, "NOAUTH"));
    freeReplyObject(reply);
    redisFree(redis);
}

static void tenants_and_keys(void **state) {
    char key[SUITE_KEY_MAX];
    suite_key_make(*state, key);
    free(suite_cli_ok(*state, WORDS("tenants", "list")));
    free(suite_cli_ok(*state, WORDS("keys", "list", "--tenant", "default")));
}

/* What the gateway asks Redis besides: who sent this key before, and a ticket for telemetry. */
static void keys_and_tickets(void **state) {
    const struct suite *suite = *state;
    char bearer[128];
    auto_json body = suite_prompt("It was", NULL);
    auto_text text = json_dumps(body, JSON_COMPACT);
    (void)snprintf(bearer, sizeof bearer, "Authorization: Bearer %s", suite->key);
    for (int i = 0; i < 2; i++) {
        auto_answer answer = suite_send(
            *state, &(struct http_request){.method = "POST",
                                           .path = "/v1/completions",
                                           .headers = WORDS(bearer, "Idempotency-Key: once",
                                                            "Content-Type: application/json"),
                                           .body = fx_span_str(text)});
        if (answer.status != 200) fail_msg("%u: %s", answer.status, answer.conn.body.at);
    }
    auto_answer ticket = suite_request(*state, "POST", "/v1/telemetry/tickets", NULL);
    if (ticket.status != 200) fail_msg("%u: %s", ticket.status, ticket.conn.body.at);
}

static void nothing_was_refused(void **state) {
    redisContext *redis = dial(*state);
    redisReply *log = redisCommand(redis, "ACL LOG");
    assert_non_null(log);
    for (size_t i = 0; i < log->elements; i++) {
        const redisReply *entry = log->element[i];
        for (size_t j = 0; j + 1 < entry->elements; j += 2)
            if (entry->element[j + 1]->str)
                print_message("%s=%s ", entry->element[j]->str, entry->element[j + 1]->str);
        print_message("\n");
    }
    assert_int_equal(log->elements, 0);
    freeReplyObject(log);
    redisFree(redis);
}

int main(void) {
    static char acl[96], ca[96], cert[96], key[96], text[8];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_works),
        cmocka_unit_test(a_hang_up_cancels),
        cmocka_unit_test(a_death),
        cmocka_unit_test(a_restart_of_redis),
        cmocka_unit_test(tenants_and_keys),
        cmocka_unit_test(keys_and_tickets),
        cmocka_unit_test(nothing_was_refused),
    };
    (void)snprintf(folder, sizeof folder, "/tmp/fx-users-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    certificates_make(folder);
    free_ports(&port, 1);
    acl_copy(acl, sizeof acl);
    (void)snprintf(ca, sizeof ca, "%s/ca.pem", folder);
    (void)snprintf(cert, sizeof cert, "%s/server.pem", folder);
    (void)snprintf(key, sizeof key, "%s/server.key", folder);
    (void)snprintf(text, sizeof text, "%u", port);
    (void)snprintf(ca_variable, sizeof ca_variable, "FX_REDIS_CA=%s", ca);
    const char *const redis_args[] = {"--bind",
                                      "127.0.0.1",
                                      "--tls-port",
                                      text,
                                      "--tls-cert-file",
                                      cert,
                                      "--tls-key-file",
                                      key,
                                      "--tls-ca-cert-file",
                                      ca,
                                      "--tls-auth-clients",
                                      "no",
                                      "--aclfile",
                                      acl,
                                      NULL};
    redis_arguments = redis_args;
    const char *const env[] = {ca_variable, NULL};
    int failed =
        suite_main("redis_users", tests, FX_TEST_COUNT(tests),
                   &(struct suite_opts){
                       .workers = 2, .env = env, .redis_args = redis_args, .redis_url = url_of});
    folder_remove(folder);
    return failed;
}
