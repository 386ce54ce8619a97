/* Clients that do not read: their answers wait for them, for so long; all others go on. */
#include "tests/integ/gateway/stage.h"
#include <fcntl.h>
#include "common/base/clock.h"

/* Twenty log probabilities a token: a kilobyte and more. */
#define BULKY                                                                                      \
    "{\"model\":\"" STAGE_MODEL "\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"        \
    "\"stream\":true,\"logprobs\":true,\"top_logprobs\":20,\"max_tokens\":240}"
#define STREAM(more)                                                                               \
    "{\"model\":\"" STAGE_MODEL "\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"        \
    "\"stream\":true" more "}"

enum { READERS = 50, STOPPED = 10, TOKENS = 120, EVERY_MS = 10, ANSWER_MAX = 1 << 20 };

static void gateway_reopen(struct stage *stage, uint32_t unread_ms) {
    stage_gateway_close(stage);
    stage->config.unread_bytes = 8192;
    stage->config.unread_ms_max = unread_ms;
    stage_gateway_open(stage);
    stage->slots = READERS + STOPPED;
    stage->beat_ms = 0;
}

static bool wait_for(atomic_ullong *counter, unsigned long long want) {
    for (int i = 0; i < 5000 && *counter != want; i++)
        usleep(1000);
    return *counter == want;
}

/* -- readers -- */

struct reader {
    int fd;
    char *text;
    size_t len;
    uint64_t heard_ms;
    bool ended;
};

static void reader_read(struct reader *reader, uint64_t *gap_ms) {
    ssize_t got = recv(reader->fd, reader->text + reader->len, ANSWER_MAX - 1 - reader->len, 0);
    uint64_t now_ms = fx_clock_ms(), gap = now_ms - reader->heard_ms;
    assert_true(got > 0);
    if (reader->len && gap > *gap_ms) *gap_ms = gap;
    reader->heard_ms = now_ms;
    reader->len += (size_t)got;
    reader->ended = strstr(reader->text, "data: [DONE]\n\n\r\n0\r\n\r\n") != NULL;
}

/* All of all answers; the longest silence that one of them saw. */
static uint64_t read_all(struct reader *readers, size_t count) {
    uint64_t gap_ms = 0, end_ms = fx_clock_ms() + 20000;
    for (size_t left = count; left && fx_clock_ms() < end_ms;) {
        struct pollfd polls[READERS];
        for (size_t i = 0; i < count; i++)
            polls[i] = (struct pollfd){readers[i].ended ? -1 : readers[i].fd, POLLIN, 0};
        (void)poll(polls, count, 1000);
        left = 0;
        for (size_t i = 0; i < count; i++) {
            if (!readers[i].ended && polls[i].revents) reader_read(&readers[i], &gap_ms);
            left += !readers[i].ended;
        }
    }
    return gap_ms;
}

static void readers_open(struct stage *stage, struct reader *readers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        readers[i] = (struct reader){.fd = stage_connect(stage), .text = calloc(1, ANSWER_MAX)};
        stage_post(readers[i].fd, "/v1/chat/completions", STREAM(",\"max_tokens\":120"));
    }
}

/* Each has its whole answer. */
static void readers_close(struct reader *readers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_true(readers[i].ended);
        struct stage_stream got = stage_stream_read(readers[i].text);
        assert_int_equal(strlen(got.text), TOKENS);
        assert_int_equal(strspn(got.text, "x"), TOKENS);
        free(got.text);
        free(readers[i].text);
        close(readers[i].fd);
    }
}

/* 50 read, 10 have stopped: these wait, hold no more than their share and are cut in the end, with
 * a counter and a cancel each; nobody else notices. */
static void test_fifty_and_ten(void **state) {
    struct stage *stage = *state;
    struct reader readers[READERS];
    struct fx_http_stats stats;
    int stopped[STOPPED];
    gateway_reopen(stage, 3000);
    struct gw_metrics *metrics = &stage->gateway->metrics;
    stage_say(stage, (struct stage_script){NULL, 0, 0, EVERY_MS, 1, FX_FINISH_LENGTH, NULL});
    for (int i = 0; i < STOPPED; i++) {
        stopped[i] = stage_connect_narrow(stage);
        stage_post(stopped[i], "/v1/chat/completions", BULKY);
    }
    assert_true(wait_for(&metrics->unread, STOPPED));
    uint64_t begun_ms = fx_clock_ms();
    readers_open(stage, readers, READERS);
    uint64_t gap_ms = read_all(readers, READERS), took_ms = fx_clock_ms() - begun_ms;
    print_message("%d answers of %d tokens in %llu ms, the longest silence %llu ms\n", READERS,
                  TOKENS, (unsigned long long)took_ms, (unsigned long long)gap_ms);
    readers_close(readers, READERS);
    assert_true(gap_ms < 500);
    assert_true(wait_for(&metrics->unread, 0));
    for (int i = 0;
         i < 2000 && stage->cancelled + (int)metrics->finished_length < READERS + STOPPED; i++)
        usleep(1000);
    gw_metrics_http(metrics, stage->gateway->server);
    fx_http_server_stats(stage->gateway->server, &stats);
    assert_int_equal(stats.cut_slow, STOPPED);
    assert_int_equal(metrics->unread_total, STOPPED);
    assert_int_equal(stage->cancelled, STOPPED);
    for (int i = 0; i < STOPPED; i++)
        close(stopped[i]);
    assert_int_equal(metrics->running, 0);
    assert_true(stage_wait(&stage->running, 0));
}

/* One that reads again in time has all of it, each token once. */
static void test_reads_again(void **state) {
    struct stage *stage = *state;
    struct reader reader = {.text = calloc(1, ANSWER_MAX)};
    uint64_t gap_ms = 0, end_ms = fx_clock_ms() + 15000;
    gateway_reopen(stage, 20000);
    struct gw_metrics *metrics = &stage->gateway->metrics;
    stage_say(stage, (struct stage_script){NULL, 0, 0, 4, 1, FX_FINISH_LENGTH, NULL});
    reader.fd = stage_connect_narrow(stage);
    stage_post(reader.fd, "/v1/chat/completions", BULKY);
    assert_true(wait_for(&metrics->unread, 1));
    assert_true(stage_wait(&stage->running, 0)); /* it ended meanwhile */
    while (!reader.ended && fx_clock_ms() < end_ms)
        reader_read(&reader, &gap_ms);
    assert_true(reader.ended);
    struct stage_stream got = stage_stream_read(reader.text);
    assert_int_equal(strlen(got.text), 240);
    assert_int_equal(got.last_n, 240);
    assert_string_equal(got.reason, "length");
    assert_int_equal(stage->cancelled, 0);
    assert_int_equal(metrics->unread, 0);
    print_message("the answer waited %llu times\n", (unsigned long long)metrics->unread_total);
    free(got.text);
    free(reader.text);
    close(reader.fd);
}

/* It never reads, and leaves: the key is charged for all that was made meanwhile. */
static void test_charged(void **state) {
    struct stage *stage = *state;
    char left[64];
    gateway_reopen(stage, 20000);
    struct gw_metrics *metrics = &stage->gateway->metrics;
    stage->key_limits.tokens = 300; /* 3 of the prompt, 240 of the answer */
    stage_say(stage, (struct stage_script){NULL, 0, 0, 4, 1, FX_FINISH_LENGTH, NULL});
    int fd = stage_connect_narrow(stage);
    stage_post(fd, "/v1/chat/completions", BULKY);
    assert_true(wait_for(&metrics->unread, 1));
    assert_true(stage_wait(&stage->running, 0));
    close(fd);
    assert_true(wait_for(&metrics->unread, 0));
    for (int i = 0; i < 2000 && stage->gateway->visit_count; i++)
        usleep(1000);
    assert_int_equal(stage->gateway->visit_count, 0);
    char *answer = stage_get(stage, "/v1/models", "Authorization: Bearer " STAGE_KEY "\r\n");
    assert_true(stage_header(answer, "x-ratelimit-remaining-tokens", left));
    assert_in_range(strtoul(left, NULL, 10), 57, 120); /* some have come back meanwhile */
    free(answer);
}

/* What a step brings to the eight choices of one client comes in one piece. */
static void test_one_write_a_step(void **state) {
    struct stage *stage = *state;
    struct reader reader = {.text = calloc(1, ANSWER_MAX)};
    uint64_t gap_ms = 0;
    size_t reads = 0, chunks = 0;
    stage->slots = 16;
    stage_say(stage, (struct stage_script){NULL, 0, 0, 40, 1, FX_FINISH_LENGTH, NULL});
    reader.fd = stage_connect(stage);
    stage_post(reader.fd, "/v1/chat/completions", STREAM(",\"max_tokens\":20,\"n\":8"));
    for (; !reader.ended; reads++)
        reader_read(&reader, &gap_ms);
    for (const char *at = reader.text; (at = strstr(at, "\"content\":\"x\"")); at++)
        chunks++;
    print_message("%zu tokens in %zu reads\n", chunks, reads);
    assert_int_equal(chunks, 8 * 20);
    assert_true(reads <= 3 * 20); /* not 160 */
    free(reader.text);
    close(reader.fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fifty_and_ten, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_reads_again, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_charged, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_one_write_a_step, stage_setup, stage_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
