/* The whole suite by mTLS, HTTPS and rediss:// while every certificate is replaced twice: by one
 * that soon ends, with a second authority beside the first, then by one of the second. Requests and
 * streams run through it and behind the end of the first two; none fails. */
#include "tests/fx_issuer.h"
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>
#include "tests/e2e/suite.h"
#include "tests/e2e/tls_tunnel.h"

#define PROMPT "It is a truth universally acknowledged,"
/* A certificate lives at least as long as services take to see it, on any machine. */
enum { HOUR = 3600, SHORT_S = 15, TOKENS = 300, FEW = 8, STREAMS = 4, CHUNKS = 3, STEP_MS = 30000 };

static char folder[64], volume[96], url[64], whole_env[8][320];
static char ca[256], cert[256], key[256];
static uint16_t port;
static struct issuer old, new;
static struct tls_tunnel *tunnel;
static char *whole, *few; /* undisturbed */

static json_t *tokens(int count) {
    return json_pack("{s:i, s:b}", "max_tokens", count, "ignore_eos", 1);
}

/* -- a volume of secrets -- */

struct contents {
    const struct issuer *issuer, *also; /* whose certificate; who is trusted beside `old` */
    long ends_s;
};

static void fill(const char *path, const struct contents *contents) {
    issuer_bundle(path, &old, contents->also);
    issuer_issue(
        contents->issuer, path,
        &(struct issue){"tls", "service", "DNS:localhost,IP:127.0.0.1", -HOUR, contents->ends_s});
}

static void generation(const char *name, const struct contents *contents) {
    char path[256];
    (void)issuer_in(volume, name, path);
    assert_int_equal(mkdir(path, 0700), 0);
    fill(path, contents);
    issuer_swap(volume, name);
}

/* -- Redis, whose files are read when it is told to -- */

static void redis_say(const struct suite *suite, int argc, const char **argv) {
    redisContext *redis = redisConnectUnix(suite->redis.socket);
    assert_true(redis && !redis->err);
    redisReply *reply = redisCommandArgv(redis, argc, argv, NULL);
    if (!reply || reply->type == REDIS_REPLY_ERROR) fail_msg("%s", reply ? reply->str : "Redis");
    freeReplyObject(reply);
    redisFree(redis);
}

static void redis_renews(const struct suite *suite) {
    const char *set[] = {"CONFIG",        "SET", "tls-ca-cert-file", ca,
                         "tls-cert-file", cert,  "tls-key-file",     key};
    redis_say(suite, FX_TEST_COUNT(set), set);
}

static void redis_kills(const struct suite *suite) {
    const char *normal[] = {"CLIENT", "KILL", "TYPE", "normal"};
    const char *pubsub[] = {"CLIENT", "KILL", "TYPE", "pubsub"};
    redis_say(suite, FX_TEST_COUNT(normal), normal);
    redis_say(suite, FX_TEST_COUNT(pubsub), pubsub);
}

/* -- what runs all the time -- */

static struct {
    pthread_t thread;
    struct suite *suite;
    atomic_bool ending;
    uint32_t answers, failed;
    char why[512];
} asking;

static bool ask(fx_error *err) {
    struct stream stream;
    bool ok = stream_open(&stream, asking.suite, PROMPT, tokens(FEW), err) &&
              stream_rest(&stream, err) &&
              (strcmp(stream.text.at, few) == 0 ||
               fx_fail(err, FX_DATA_LOSS, "another text: %.100s", stream.text.at));
    stream_close(&stream);
    return ok;
}

static void *keep_asking(void *argument) {
    (void)argument;
    for (; !asking.ending; (void)usleep(10000)) {
        fx_error err = {0};
        asking.answers++;
        if (ask(&err)) continue;
        if (!asking.failed++) (void)snprintf(asking.why, sizeof asking.why, "%s", err.text);
    }
    return NULL;
}

static void streams_begin(struct suite *suite, struct stream streams[STREAMS]) {
    for (int i = 0; i < STREAMS; i++) {
        MUST(stream_open(&streams[i], suite, PROMPT, tokens(TOKENS), &err));
        MUST(stream_until(&streams[i], CHUNKS, &err));
    }
}

static void streams_end(struct stream streams[STREAMS]) {
    for (int i = 0; i < STREAMS; i++) {
        MUST(stream_rest(&streams[i], &err));
        assert_string_equal(streams[i].text.at, whole);
        stream_close(&streams[i]);
    }
}

/* Every service has these many generations behind it, and says when the one in use ends. */
static bool has_taken(const struct service *service, uint32_t count) {
    auto_text metrics = service_metrics(service);
    char *grpc = strstr(metrics, "fx_certificate_reloads_total{use=\"grpc\"} ");
    char *expiry = strstr(metrics, "fx_certificate_expiry_timestamp_seconds{use=\"grpc\"} ");
    assert_non_null(grpc);
    assert_non_null(expiry);
    assert_true(metric_of(metrics, "fx_certificate_refused_total") == 0);
    return strtoul(strchr(grpc, ' '), NULL, 10) >= count;
}

static void await_taken(struct suite *suite, uint32_t count) {
    for (uint32_t i = 0; suite_service(suite, i); i++)
        WAIT_FOR(has_taken(suite_service(suite, i), count), STEP_MS, "%s does not see it",
                 suite_service(suite, i)->process.name);
}

static void rotate(struct suite *suite, const char *name, uint32_t count,
                   const struct contents *contents) {
    generation(name, contents);
    await_taken(suite, count);
    redis_renews(suite);
}

static void asking_begin(struct suite *suite) {
    asking.suite = suite;
    assert_int_equal(pthread_create(&asking.thread, NULL, keep_asking, NULL), 0);
}

static void asking_end(void) {
    uint32_t answers = asking.answers;
    WAIT_FOR(asking.answers > answers + 10, STEP_MS, "no more answers");
    asking.ending = true;
    assert_int_equal(pthread_join(asking.thread, NULL), 0);
    print_message("- %u requests beside %d streams, %u failed\n", asking.answers, 2 * STREAMS,
                  asking.failed);
    if (asking.failed) fail_msg("%s", asking.why);
    assert_int_equal(tls_tunnel_refused(tunnel), 0);
}

static void nothing_fails(void **state) {
    struct suite *suite = *state;
    struct stream before[STREAMS] = {0}, between[STREAMS] = {0};
    tunnel = tls_tunnel_open(suite->gateways[0].port, ca);
    suite->gateways[0].port = tls_tunnel_port(tunnel);
    whole = suite_complete(suite, PROMPT, tokens(TOKENS));
    few = suite_complete(suite, PROMPT, tokens(FEW));
    asking_begin(suite);
    streams_begin(suite, before);
    int64_t ends_s = (int64_t)time(NULL) + SHORT_S;
    rotate(suite, "..one", 1, &(struct contents){&old, &new, SHORT_S});
    streams_begin(suite, between);
    rotate(suite, "..two", 2, &(struct contents){&new, &new, HOUR});
    streams_end(before);
    streams_end(between);
    while ((int64_t)time(NULL) <= ends_s + 1) /* the one before has ended */
        (void)usleep(100000);
    asking_end();
}

static bool works(struct suite *suite) {
    auto_answer answer =
        suite_request(suite, "POST", "/v1/completions", suite_prompt(PROMPT, tokens(FEW)));
    return answer.status == 200;
}

/* Their connections to Redis were made with what has ended by now. */
static void all_connect_anew(void **state) {
    struct suite *suite = *state;
    redis_kills(suite);
    for (uint32_t i = 0; i < suite->opts.workers; i++)
        WAIT_FOR(service_metric(&suite->workers[i], "fx_worker_redis_reconnects_total") > 0.5,
                 STEP_MS, "worker %u kept its connection", i);
    WAIT_FOR(works(suite), STEP_MS, "no answer behind it");
    auto_text text = suite_complete(suite, PROMPT, tokens(FEW));
    assert_string_equal(text, few);
    for (uint32_t i = 0; suite_service(suite, i); i++) {
        auto_text metrics = service_metrics(suite_service(suite, i));
        assert_true(metric_of(metrics, "fx_certificate_refused_total") == 0);
    }
}

/* Not by chance: who has none of these is nobody. */
static void a_stranger_is_refused(void **state) {
    const char *const args[] = {"keys", "list", "--tenant", "default", NULL};
    const struct suite *suite = *state;
    struct suite plain = *suite;
    process_env_put(&plain.env, "FX_TLS_CA=");
    process_env_put(&plain.env, "FX_TLS_CERT=");
    process_env_put(&plain.env, "FX_TLS_KEY=");
    auto_output output = suite_cli(&plain, args);
    assert_int_not_equal(output.code, 0);
    free(suite_cli_ok(*state, args));
}

static const char *url_of(const struct suite *suite, const char *program, uint32_t number) {
    (void)suite, (void)program, (void)number;
    return url;
}

static const char *const *env_make(void) {
    static const char *env[FX_TEST_COUNT(whole_env) + 1];
    const char *const values[][2] = {
        {"FX_TLS_CA",        ca  },
        {"FX_TLS_CERT",      cert},
        {"FX_TLS_KEY",       key },
        {"FX_REDIS_CA",      ca  },
        {"FX_REDIS_CERT",    cert},
        {"FX_REDIS_KEY",     key },
        {"FX_HTTP_TLS_CERT", cert},
        {"FX_HTTP_TLS_KEY",  key },
    };
    for (size_t i = 0; i < FX_TEST_COUNT(values); i++) {
        (void)snprintf(whole_env[i], sizeof whole_env[i], "%s=%s", values[i][0], values[i][1]);
        env[i] = whole_env[i];
    }
    return env;
}

static void secrets_make(void) {
    char first[256];
    (void)snprintf(volume, sizeof volume, "%s/secret", folder);
    (void)issuer_in(volume, "..zero", first);
    (void)issuer_in(volume, "ca.pem", ca);
    (void)issuer_in(volume, "tls.pem", cert);
    (void)issuer_in(volume, "tls.key", key);
    old = issuer_open("old");
    new = issuer_open("new");
    issuer_volume(volume, first);
    fill(first, &(struct contents){&old, NULL, HOUR});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_fails),
        cmocka_unit_test(all_connect_anew),
        cmocka_unit_test(a_stranger_is_refused),
    };
    char text[8];
    (void)snprintf(folder, sizeof folder, "/tmp/fx-rotation-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    secrets_make();
    free_ports(&port, 1);
    (void)snprintf(text, sizeof text, "%u", port);
    (void)snprintf(url, sizeof url, "rediss://localhost:%u", port);
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
                                      "yes",
                                      NULL};
    int failed = suite_main("rotation", tests, FX_TEST_COUNT(tests),
                            &(struct suite_opts){
                                .workers = 2,
                                .env = env_make(),
                                .worker_env = WORDS("FX_BACKEND=ref", "FX_THREADS=1"), /* slowly */
                                .redis_args = redis_args,
                                .redis_url = url_of,
                            });
    tls_tunnel_close(tunnel);
    issuer_close(&old);
    issuer_close(&new);
    folder_remove(folder);
    free(whole);
    free(few);
    return failed;
}
