/* Redis's disk, a small one of its own, is full: Redis with appendfsync always ends, with everysec
 * it refuses to write. What it acknowledged is there once there is room, answers that ran go on,
 * and new requests are refused meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "tests/e2e/suite.h"

#define PROMPT "It is a truth universally acknowledged,"
#define DISK "size=24m"
enum {
    TOKENS = 300,
    FEW = 8,
    STREAMS = 4,
    CHUNKS = 3,
    STEP_MS = 60000,
    VALUE_BYTES = 4096,
    LEFT_BYTES = 64 * 1024,
    WRITES_MAX = 100000,
    SKIPPED = 77,
};

static char folder[64], disk[96], filler[128], log_path[96];
static const char *const *redis_args;
static char *whole, *few; /* undisturbed */

static json_t *tokens(int count) {
    return json_pack("{s:i, s:b}", "max_tokens", count, "ignore_eos", 1);
}

/* -- the disk -- */

/* All of it but LEFT_BYTES. */
static void disk_fill(void) {
    static const char zeroes[LEFT_BYTES];
    int fd = open(filler, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    off_t size = 0;
    ssize_t len;
    assert_true(fd >= 0);
    while ((len = write(fd, zeroes, sizeof zeroes)) > 0)
        size += len;
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(ftruncate(fd, size > LEFT_BYTES ? size - LEFT_BYTES : 0), 0);
    assert_int_equal(close(fd), 0);
}

static void disk_free(void) {
    assert_int_equal(unlink(filler), 0);
}

/* -- Redis -- */

static redisContext *dial(const struct suite *suite) {
    redisContext *redis = redisConnectUnix(suite->redis.socket);
    assert_true(redis && !redis->err);
    return redis;
}

static void mode_set(const struct suite *suite, const char *mode) {
    redisContext *redis = dial(suite);
    redisReply *reply = redisCommand(redis, "CONFIG SET appendfsync %s", mode);
    assert_string_equal(reply->str, "OK");
    freeReplyObject(reply);
    redisFree(redis);
}

/* Writes until it is refused; how many were acknowledged, and what came instead of the next. */
static uint32_t write_until(const struct suite *suite, const char *name, char why[128]) {
    static char value[VALUE_BYTES];
    redisContext *redis = dial(suite);
    uint32_t count = 0;
    memset(value, 'v', sizeof value);
    for (; count < WRITES_MAX; count++) {
        redisReply *reply = redisCommand(redis, "SET %s:%u %b", name, count, value, sizeof value);
        bool ok = reply && reply->type == REDIS_REPLY_STATUS;
        if (!ok) (void)snprintf(why, 128, "%s", reply ? reply->str : redis->errstr);
        freeReplyObject(reply);
        if (!ok) break;
    }
    redisFree(redis);
    assert_in_range(count, 1, WRITES_MAX - 1);
    return count;
}

static void all_are_there(const struct suite *suite, const char *name, uint32_t count) {
    redisContext *redis = dial(suite);
    for (uint32_t i = 0; i < count; i++) {
        redisReply *reply = redisCommand(redis, "STRLEN %s:%u", name, i);
        assert_int_equal(reply->integer, VALUE_BYTES);
        freeReplyObject(reply);
        freeReplyObject(redisCommand(redis, "DEL %s:%u", name, i));
    }
    redisFree(redis);
}

/* -- the suite over it -- */

static void begin(struct suite *suite, struct stream streams[STREAMS]) {
    for (int i = 0; i < STREAMS; i++) {
        MUST(stream_open(&streams[i], suite, PROMPT, tokens(TOKENS), &err));
        MUST(stream_until(&streams[i], CHUNKS, &err));
    }
}

static void go_on(struct stream streams[STREAMS]) {
    for (int i = 0; i < STREAMS; i++) {
        MUST(stream_rest(&streams[i], &err));
        assert_string_equal(streams[i].text.at, whole);
        stream_close(&streams[i]);
    }
}

static unsigned try(struct suite *suite) {
    char after[16] = "";
    auto_answer answer =
        suite_request(suite, "POST", "/v1/completions", suite_prompt(PROMPT, tokens(FEW)));
    if (answer.status == 503) assert_true(http_header(&answer.conn, "retry-after", after, 16));
    return answer.status;
}

static void works_again(struct suite *suite) {
    WAIT_FOR(try(suite) == 200, STEP_MS, "it does not come back");
    auto_text text = suite_complete(suite, PROMPT, tokens(FEW));
    assert_string_equal(text, few);
    for (uint32_t i = 0; i < suite->opts.workers; i++)
        WAIT_FOR(worker_is_free(&suite->workers[i]), STEP_MS, "worker %u holds on", i);
}

static void undisturbed(void **state) {
    whole = suite_complete(*state, PROMPT, tokens(TOKENS));
    few = suite_complete(*state, PROMPT, tokens(FEW));
}

static void always(void **state) {
    struct suite *suite = *state;
    struct stream streams[STREAMS] = {0};
    char why[128] = "";
    int status = 0;
    begin(suite, streams);
    disk_fill();
    uint32_t count = write_until(suite, "always", why);
    assert_int_equal(waitpid(suite->redis.pid, &status, 0), suite->redis.pid);
    suite->redis.pid = 0;
    assert_true(WIFEXITED(status));
    print_message("- %u writes acknowledged, then: %s; Redis ends with %d\n", count, why,
                  WEXITSTATUS(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_int_equal(try(suite), 503);
    disk_free();
    redis_fixture_restart(&suite->redis, redis_args);
    go_on(streams);
    all_are_there(suite, "always", count);
    works_again(suite);
}

/* It asks for the end of the AOF once a second: what it says meanwhile is MISCONF. */
static void everysec(void **state) {
    struct suite *suite = *state;
    struct stream streams[STREAMS] = {0};
    char why[128] = "";
    mode_set(suite, "everysec");
    begin(suite, streams);
    disk_fill();
    uint32_t count = write_until(suite, "everysec", why);
    print_message("- %u writes acknowledged, then: %s\n", count, why);
    assert_int_equal(strncmp(why, "MISCONF", 7), 0);
    assert_int_equal(try(suite), 503);
    disk_free();
    go_on(streams);
    all_are_there(suite, "everysec", count);
    mode_set(suite, "always");
    works_again(suite);
}

static bool disk_make(void) {
    (void)snprintf(folder, sizeof folder, "/tmp/fx-full-XXXXXX");
    if (!mkdtemp(folder)) return false;
    (void)snprintf(disk, sizeof disk, "%s/disk", folder);
    (void)snprintf(filler, sizeof filler, "%s/filler", disk);
    (void)snprintf(log_path, sizeof log_path, "%s/redis.log", folder);
    if (mkdir(disk, 0700) != 0) return false;
    if (mount("none", disk, "tmpfs", MS_NOSUID | MS_NODEV, DISK) == 0) return true;
    print_message("no disk of %s for Redis: mount: %s\n", DISK, strerror(errno));
    folder_remove(folder);
    return false;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undisturbed),
        cmocka_unit_test(always),
        cmocka_unit_test(everysec),
    };
    if (!disk_make()) return SKIPPED;
    const char *const args[] = {"--dir", disk, "--logfile", log_path, NULL};
    redis_args = args;
    int failed = suite_main("disk_full", tests, FX_TEST_COUNT(tests),
                            &(struct suite_opts){
                                .workers = 2,
                                .worker_env = WORDS("FX_BACKEND=ref", "FX_THREADS=1"), /* slowly */
                                .env = WORDS("FX_LEASE_MS=1500", "FX_RENEW_MS=400"),
                                .redis_args = args,
                            });
    failed |= umount(disk) != 0;
    folder_remove(folder);
    free(whole);
    free(few);
    return failed;
}
