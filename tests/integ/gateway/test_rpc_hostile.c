/* The public gRPC API and clients that mean no good: what they are answered, and when. */
#include "tests/integ/gateway/rpc_client.h"
#include "tests/integ/rpc/h2.h"

enum { WINDOW_UPDATE = 8, STREAM_TEXT_MAX = 1024 };

static const char chat_path[] = "/fractal.v1.InferenceService/Chat";
static const struct h2_header key[] = {
    {"authorization", "Bearer " STAGE_KEY}
};

static struct fx_server_stats stats(struct stage *stage) {
    return fx_server_stats(stage->process->rpc);
}

static int connection(struct stage *stage, uint32_t window) {
    return h2_open(gw_process_rpc_port(stage->process), window);
}

static void chat_send(int fd, const struct rpc_chat *chat) {
    uint8_t packed[512];
    assert_in_range(fractal__v1__chat_request__get_packed_size(&chat->request), 0, sizeof packed);
    size_t len = fractal__v1__chat_request__pack(&chat->request, packed);
    h2_message(fd, 1, (fx_span){packed, len}, H2_END_STREAM);
}

static void check_quiet(struct stage *stage) {
    assert_true(stage_wait(&stage->running, 0));
    for (int i = 0; i < 5000 && stats(stage).calls_active; i++)
        usleep(1000);
    assert_int_equal(stats(stage).calls_active, 0);
}

/* -- before the message -- */

/* All of them are answered though the client sends no byte of its message. */
static void test_keys(void **state) {
    static const struct row {
        struct h2_header header;
        enum fx_code tenant, want;
        int asked; /* of the tenant service */
        const char *text;
    } rows[] = {
        {{"x-nothing", "1"},                 FX_OK,          FX_UNAUTHENTICATED, 0, "an API key is needed"},
        {{"authorization", "fx-good"},       FX_OK,          FX_UNAUTHENTICATED, 0, "malformed"           },
        {{"authorization", "Bearer "},       FX_OK,          FX_UNAUTHENTICATED, 0, "malformed"           },
        {{"authorization", "Bearer fx bad"}, FX_OK,          FX_UNAUTHENTICATED, 0, "malformed"           },
        {{"authorization", "Bearer fx-bad"}, FX_OK,          FX_UNAUTHENTICATED, 1, "not valid"           },
        {{"x-auth-token", "fx-bad"},         FX_OK,          FX_UNAUTHENTICATED, 1, "not valid"           },
        {{"authorization", "Bearer fx-new"}, FX_UNAVAILABLE, FX_UNAVAILABLE,     1, "be checked"          },
        {{"authorization", "Bearer fx-new"}, FX_INTERNAL,    FX_UNAVAILABLE,     1, "be checked"          },
    };
    struct stage *stage = *state;
    char text[H2_FRAME_MAX];
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        int fd = connection(stage, 65535), asked = stage->authenticated;
        stage->tenant_code = (int)rows[i].tenant;
        h2_call(fd, 1, chat_path, &rows[i].header, 1, 0);
        assert_int_equal(h2_status(fd, 1, text), rows[i].want);
        if (!strstr(text, rows[i].text)) fail_msg("%zu: %s", i, text);
        assert_non_null(strstr(text, "grpc-status-details-bin"));
        if (rows[i].tenant == FX_OK) assert_int_equal(stage->authenticated - asked, rows[i].asked);
        close(fd);
    }
    check_quiet(stage);
}

/* A client with a key that goes before, or never sends, its message. */
static void test_no_message(void **state) {
    struct stage *stage = *state;
    static const struct h2_header headers[] = {
        {"authorization", "Bearer " STAGE_KEY},
        {"grpc-timeout",  "100m"             },
    };
    int fd = connection(stage, 65535);
    h2_call(fd, 1, chat_path, key, 1, 0);
    close(fd);
    fd = connection(stage, 65535);
    h2_call(fd, 1, chat_path, headers, 2, 0);
    int status = h2_status(fd, 1, NULL);
    assert_true(status == FX_DEADLINE_EXCEEDED || status == -1);
    close(fd);
    check_quiet(stage);
    assert_int_equal(stage->submitted, 0);
}

/* -- text -- */

static void test_no_text(void **state) {
    static const struct {
        const char *message;
        size_t len;
        const char *text;
    } rows[] = {
        {"\x0a\x3"
         "x\0y",      5, "model has a NUL character"              },
        {"\x12\x5\x12\x3"
         "a\0b",      7, "messages[0].content has a NUL character"},
        {"\x12\x3\x0a\x1\xff", 5, "messages[0].role is not valid UTF-8"    },
        {"\x22\x4\x32\x2\0x",  6, "sampling.stop[0] has a NUL character"   },
    };
    struct stage *stage = *state;
    char text[H2_FRAME_MAX];
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        int fd = connection(stage, 65535);
        h2_call(fd, 1, chat_path, key, 1, 0);
        h2_message(fd, 1, (fx_span){(const uint8_t *)rows[i].message, rows[i].len}, H2_END_STREAM);
        assert_int_equal(h2_status(fd, 1, text), FX_INVALID_ARGUMENT);
        if (!strstr(text, rows[i].text)) fail_msg("%zu: %s", i, text);
        assert_non_null(strstr(text, "grpc-status-details-bin"));
        close(fd);
    }
    check_quiet(stage);
}

/* -- clients that do not read -- */

/* Everything that came meanwhile leaves in one message. */
static void test_late_window(void **state) {
    static struct h2_frame frame;
    static const uint8_t more[4] = {0, 1, 0, 0};
    struct stage *stage = *state;
    struct rpc_chat chat;
    uint8_t text[STREAM_TEXT_MAX];
    fx_buf got = {text, 0, sizeof text};
    size_t messages = 0;
    int fd = connection(stage, 0);
    rpc_chat_make(&chat);
    stage_say(stage, (struct stage_script){"The whole of it.", 16, 0, 1, 1, FX_FINISH_STOP, NULL});
    h2_call(fd, 1, chat_path, key, 1, 0);
    chat_send(fd, &chat);
    assert_true(stage_wait(&stage->submitted, 1));
    for (int i = 0; i < 5000 && !stage->process->loops[0].metrics.finished_stop; i++)
        usleep(1000);
    h2_frame(fd, WINDOW_UPDATE, 0, 1, more, sizeof more);
    while (h2_next(fd, &frame) && !(frame.flags & H2_END_STREAM))
        if (frame.type == H2_DATA) fx_buf_put(&got, (fx_span){frame.at, frame.len});
    assert_true(fx_buf_fits(&got));
    for (size_t at = 0; at + 5 <= got.len; messages++) {
        uint32_t len;
        memcpy(&len, text + at + 1, sizeof len);
        at += 5 + ntohl(len);
        assert_in_range(at, 0, got.len);
    }
    assert_int_equal(messages, 2); /* "admitted", and the answer */
    assert_non_null(memmem(text, got.len, "The whole of it.", 16));
    close(fd);
    check_quiet(stage);
}

/* Past GW_RPC_UNREAD_MAX it is cut: told so though it reads nothing, and nothing of it runs on. */
static void test_never_reads(void **state) {
    struct stage *stage = *state;
    struct rpc_chat chat;
    char text[H2_FRAME_MAX];
    int fd = connection(stage, 0);
    rpc_chat_make(&chat);
    chat.request.n = 16;
    chat.request.logprobs = 1;
    chat.request.top_logprobs = 20;
    stage_say(stage, (struct stage_script){NULL, 0, 0, 30, 4, FX_FINISH_STOP, NULL});
    h2_call(fd, 1, chat_path, key, 1, 0);
    chat_send(fd, &chat);
    assert_int_equal(h2_status(fd, 1, text), FX_RESOURCE_EXHAUSTED);
    if (!strstr(text, "bytes unread")) fail_msg("%s", text);
    assert_int_equal(stats(stage).cut_slow, 1);
    check_quiet(stage);
    assert_true(stage_wait(&stage->cancelled, 16));
    close(fd);
}

int main(void) {
#define ROW(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)
    const struct CMUnitTest tests[] = {
        ROW(test_keys),        ROW(test_no_message),  ROW(test_no_text),
        ROW(test_late_window), ROW(test_never_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
