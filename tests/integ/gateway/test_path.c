/* The whole path, every part a real process: bytes on the wire, the text of the oracle, a worker
 * that dies, a client that leaves, a key that is revoked, SIGTERM. */
#include <signal.h>
#include "common/base/hash.h"
#include "tests/e2e/suite.h"
#include "tests/integ/gateway/stage.h"

#ifdef __SANITIZE_ADDRESS__
enum { FREE_MS = 1000 }; /* a step of the plain C kernels alone takes nearly 200 ms there */
#else
enum { FREE_MS = 200 };
#endif
enum { LONG_TOKENS = 300, END_MS = 20000 };

static struct suite *suite_;

static int connect_http(void) {
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(suite_->gateways[0].port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
    return fd;
}

/* The oracle's prompt `index` as a request for `count` greedy tokens; its text as the answer. */
static json_t *oracle(size_t index, bool stream, int count, char want[512]) {
    json_t *file = json_load_file(SUITE_MODEL_DIR "/oracle.json", 0, NULL);
    json_t *prompt = json_array_get(json_object_get(file, "prompts"), index);
    json_t *ids = json_object_get(prompt, "ids"), *greedy = json_object_get(prompt, "greedy_ids");
    assert_true(json_is_array(ids) && json_array_size(greedy) >= (size_t)count);
    for (int i = 0; i < count; i++)
        want[i] = (char)json_integer_value(json_array_get(greedy, (size_t)i));
    want[count] = 0;
    json_t *body = json_pack("{s:s, s:O, s:i, s:i, s:b}", "model", SUITE_MODEL, "prompt", ids,
                             "max_tokens", count, "temperature", 0, "stream", stream);
    json_decref(file);
    return body;
}

static void post(int fd, json_t *body) {
    char head[512], *text = json_dumps(body, JSON_COMPACT);
    (void)snprintf(head, sizeof head,
                   "POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                   "Content-Length: %zu\r\n\r\n",
                   suite_->key, strlen(text));
    wire_say(fd, head);
    wire_say(fd, text);
    free(text);
    json_decref(body);
}

static void test_stream(void **state) {
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        char want[512];
        bool closed;
        int fd = connect_http();
        post(fd, oracle(i, true, 32, want));
        char *answer = wire_read(fd, "\r\n0\r\n\r\n", &closed);
        assert_false(closed);
        assert_null(strstr(answer, "connection: close"));
        struct stage_stream got = stage_stream_read(answer);
        assert_string_equal(got.text, want);
        assert_string_equal(got.reason, "length");
        assert_int_equal(got.last_n, 32);
        free(got.text);
        free(answer);
        close(fd);
    }
}

static void test_whole(void **state) {
    char want[512];
    const char *text = NULL;
    bool closed;
    (void)state;
    int fd = connect_http();
    post(fd, oracle(0, false, 64, want));
    char *answer = wire_read(fd, "\"n\":64}}", &closed);
    assert_int_equal(wire_status(answer), 200);
    json_t *json = json_loads(stage_body(answer), 0, NULL);
    assert_int_equal(json_unpack(json, "{s:[{s:s}]}", "choices", "text", &text), 0);
    assert_string_equal(text, want);
    json_decref(json);
    free(answer);
    close(fd);
}

/* -- workers -- */

static bool is_busy(const struct service *worker) {
    return !worker->killed && !worker_is_free(worker);
}

static struct service *worker_busy(void) {
    for (int i = 0; i < 1000; i++, usleep(2000))
        for (size_t w = 0; w < SUITE_MANY; w++)
            if (is_busy(&suite_->workers[w])) return &suite_->workers[w];
    fail_msg("no worker runs it");
    return NULL;
}

static json_t *long_request(bool stream, int tokens) {
    return json_pack("{s:s, s:s, s:i, s:i, s:b}", "model", SUITE_MODEL, "prompt", "The whale",
                     "max_tokens", tokens, "temperature", 0, "stream", stream);
}

static void wait_decoding(const struct service *worker) {
    static const char decoded[] = "fx_worker_tokens_decoded_total";
    double before = service_metric(worker, decoded);
    for (int i = 0; i < 5000 && service_metric(worker, decoded) <= before; i++)
        usleep(1000);
}

static uint64_t hang_up(bool stream) {
    int fd = connect_http();
    post(fd, long_request(stream, 1000));
    struct service *worker = worker_busy();
    wait_decoding(worker); /* e2e/test_hang_up has the other phases */
    close(fd);
    uint64_t begun_ms = fx_clock_ms();
    while (is_busy(worker) && fx_clock_ms() - begun_ms < 5000)
        usleep(1000);
    return fx_clock_ms() - begun_ms;
}

/* The quickest of three counts: the others may have waited for a busy machine. */
static void test_hang_up(void **state) {
    (void)state;
    for (int stream = 0; stream < 2; stream++) {
        uint64_t best_ms = UINT64_MAX;
        for (int i = 0; i < 3; i++) {
            uint64_t took_ms = hang_up(stream);
            assert_true(took_ms < 5000);
            if (took_ms < best_ms) best_ms = took_ms;
        }
        print_message("slot free after %llu ms\n", (unsigned long long)best_ms);
        assert_true(best_ms <= FREE_MS);
    }
}

/* The whole answer, of which `head` has been read: however long it takes. */
static char *answer_rest(int fd, char *head) {
    char *answer = calloc(1, WIRE_REPLY_MAX);
    size_t len = (size_t)snprintf(answer, WIRE_REPLY_MAX, "%s", head);
    bool closed;
    free(head);
    while (!strstr(answer, "\r\n0\r\n\r\n")) {
        char *rest = wire_read(fd, "\r\n0\r\n\r\n", &closed);
        if (closed || !*rest) fail_msg("the stream broke off after %zu bytes", len);
        len += (size_t)snprintf(answer + len, WIRE_REPLY_MAX - len, "%s", rest);
        free(rest);
    }
    return answer;
}

static char *stream_long(bool kill_worker) {
    bool closed;
    int fd = connect_http();
    post(fd, long_request(true, LONG_TOKENS));
    char *head = wire_read(fd, "\"n\":5}", &closed);
    if (kill_worker) {
        struct service *worker = worker_busy();
        worker->killed = true;
        process_signal(&worker->process, SIGKILL);
        assert_true(process_wait(&worker->process, END_MS));
    }
    char *answer = answer_rest(fd, head);
    close(fd);
    struct stage_stream got = stage_stream_read(answer);
    free(answer);
    assert_string_equal(got.reason, "length");
    return got.text;
}

/* Runs late: one worker less from then on. */
static void test_worker_dies(void **state) {
    (void)state;
    char *undisturbed = stream_long(false), *resumed = stream_long(true);
    assert_string_equal(resumed, undisturbed);
    free(resumed);
    free(undisturbed);
}

/* -- keys and the end -- */

static unsigned models_status(const char *key) {
    char head[256];
    bool closed;
    int fd = connect_http();
    (void)snprintf(head, sizeof head,
                   "GET /v1/models HTTP/1.1\r\nHost: x\r\nX-Auth-Token: %s\r\n"
                   "Connection: close\r\n\r\n",
                   key);
    wire_say(fd, head);
    char *answer = wire_read(fd, NULL, &closed);
    unsigned status = wire_status(answer);
    free(answer);
    close(fd);
    return status;
}

static void test_sigterm(void **state) {
    bool closed;
    (void)state;
    int fd = connect_http();
    post(fd, long_request(true, LONG_TOKENS));
    char *head = wire_read(fd, "\"n\":5}", &closed);
    process_signal(&suite_->gateways[0].process, SIGTERM);
    char *answer = answer_rest(fd, head);
    struct stage_stream got = stage_stream_read(answer);
    assert_string_equal(got.reason, "length");
    close(fd);
    assert_true(process_wait(&suite_->gateways[0].process, END_MS));
    assert_int_equal(suite_->gateways[0].process.code, 0);
    free(got.text);
    free(answer);
}

static void test_revoked_key(void **state) {
    uint8_t digest[FX_SHA256_BYTES];
    char id[17], key[SUITE_KEY_MAX];
    (void)state;
    suite_key_make(suite_, key);
    assert_int_equal(models_status(key), 200); /* now it is in the cache */
    fx_sha256(fx_span_str(key), digest);
    fx_hex((fx_span){digest, 8}, id);
    free(suite_cli_ok(suite_, WORDS("keys", "revoke", id)));
    uint64_t begun_ms = fx_clock_ms();
    while (models_status(key) == 200 && fx_clock_ms() - begun_ms < 5000)
        usleep(1000);
    assert_int_equal(models_status(key), 401);
    assert_true(fx_clock_ms() - begun_ms < 1000); /* told by Redis, not by the cache's age */
}

static int remember(void **state) {
    suite_ = *state;
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_stream, remember),
        cmocka_unit_test_setup(test_whole, remember),
        cmocka_unit_test_setup(test_hang_up, remember),
        cmocka_unit_test_setup(test_worker_dies, remember),
        cmocka_unit_test_setup(test_revoked_key, remember),
        cmocka_unit_test_setup(test_sigterm, remember),
    };
    const struct suite_opts opts = {
        .workers = 2,
        .dtype = "f16",
        .env = WORDS("FX_LOG_LEVEL=error"),
        .worker_env = WORDS("FX_BACKEND=ref"), /* the same bits, slowly: time to interfere */
    };
    return suite_main("path", tests, FX_TEST_COUNT(tests), &opts);
}
