/* Nothing comes from the model for 40 s: the client has its head at once, hears a comment every 5 s
 * and then the whole text. It sleeps, so it runs beside others. */
#include "tests/integ/gateway/stage.h"

#define CHAT(more)                                                                                 \
    "{\"model\":\"" STAGE_MODEL "\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]" more "}"
enum {
    FIRST_MS = 40000,
    PING_MS = 5000,
    HEAD_MS = 1000,
    PINGS_MIN = 7,
    QUIET_MS_MAX = PING_MS + 1000, /* of the wire */
    ANSWER_MS_MAX = FIRST_MS + 15000,
    TEXT_MAX = 65536,
};

static int setup(void **state) {
    (void)stage_setup(state);
    struct stage *stage = *state;
    stage_gateway_close(stage);
    stage->config.ping_ms = PING_MS;
    stage->config.stall_ms_max = 2 * FIRST_MS;
    stage_gateway_open(stage);
    stage_say(stage, (struct stage_script){"Hello", 5, FIRST_MS, 20, 1, FX_FINISH_STOP, NULL});
    return 0;
}

/* A stream as it comes. */
struct heard {
    int fd;
    char text[TEXT_MAX];
    size_t len;
    uint64_t begun_ms, head_ms, quiet_ms; /* quiet: the longest without a byte, after the head */
    uint64_t last_ms;
};

static void more(struct heard *heard) {
    struct pollfd one = {heard->fd, POLLIN, 0};
    if (poll(&one, 1, 100) <= 0) return;
    ssize_t got = recv(heard->fd, heard->text + heard->len, sizeof heard->text - 1 - heard->len, 0);
    if (got <= 0) fail_msg("the stream ends: %s", heard->text);
    heard->len += (size_t)got;
    uint64_t now_ms = fx_clock_ms() - heard->begun_ms;
    if (!heard->head_ms && strstr(heard->text, "\r\n\r\n")) heard->head_ms = now_ms;
    if (heard->last_ms && now_ms - heard->last_ms > heard->quiet_ms)
        heard->quiet_ms = now_ms - heard->last_ms;
    heard->last_ms = now_ms;
}

static bool ended(const struct heard *heard) {
    return strstr(heard->text, "\r\n0\r\n\r\n") != NULL;
}

static void begin(const struct stage *stage, struct heard *heard) {
    heard->fd = stage_connect(stage);
    heard->begun_ms = fx_clock_ms();
    stage_post(heard->fd, "/v1/chat/completions", CHAT(",\"stream\":true"));
}

/* Comments before the first text, each a line of its own with its blank line. */
static size_t comments_count(const char *answer) {
    size_t count = 0;
    const char *text = strstr(answer, "\"content\":\"H\"");
    assert_non_null(text);
    for (const char *at = answer; (at = strstr(at, "\r\n: ping\n\n\r\n")) && at < text; at++)
        count++;
    return count;
}

/* While one waits, what is wrong in itself is refused as ever. */
static void check_refusal(const struct stage *stage) {
    char *answer =
        stage_ask(stage, "/v1/chat/completions", CHAT(",\"stream\":true,\"temperature\":9"));
    assert_int_equal(wire_status(answer), 400);
    assert_non_null(strstr(answer, "content-type: application/json\r\n"));
    assert_non_null(strstr(answer, "\"param\":\"temperature\""));
    free(answer);
}

static void test_silence(void **state) {
    struct stage *stage = *state;
    struct heard *heard = calloc(1, sizeof *heard);
    begin(stage, heard);
    while (!heard->head_ms && fx_clock_ms() - heard->begun_ms < 2 * HEAD_MS)
        more(heard);
    assert_true(heard->head_ms && heard->head_ms <= HEAD_MS);
    check_refusal(stage);
    while (!ended(heard) && fx_clock_ms() - heard->begun_ms < ANSWER_MS_MAX)
        more(heard);
    close(heard->fd);
    assert_true(ended(heard));
    size_t comments = comments_count(heard->text);
    print_message("- head after %llu ms, %zu comments, at most %llu ms without a byte\n",
                  (unsigned long long)heard->head_ms, comments,
                  (unsigned long long)heard->quiet_ms);
    assert_true(comments >= PINGS_MIN);
    assert_true(heard->quiet_ms <= QUIET_MS_MAX);
    struct stage_stream got = stage_stream_read(heard->text); /* data and comments, nothing else */
    assert_string_equal(got.text, "Hello");
    assert_string_equal(got.reason, "stop");
    free(got.text);
    free(heard);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_silence, setup, stage_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
