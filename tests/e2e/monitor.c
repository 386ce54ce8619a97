#include "tests/e2e/monitor.h"
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <sys/socket.h>

enum { LINES_MAX = 1 << 16, KEYS_AT = 3 /* FCALL function count key... argument... */ };

struct monitor {
    redisContext *redis;
    pthread_t thread;
    pthread_mutex_t lock; /* count, lines */
    uint32_t count;
    char *lines[LINES_MAX];
};

static void line_add(struct monitor *monitor, const char *line) {
    (void)pthread_mutex_lock(&monitor->lock);
    FX_ASSERT(monitor->count < LINES_MAX);
    monitor->lines[monitor->count++] = strdup(line);
    (void)pthread_mutex_unlock(&monitor->lock);
}

static void *monitor_run(void *arg) {
    struct monitor *monitor = arg;
    for (void *reply; redisGetReply(monitor->redis, &reply) == REDIS_OK; freeReplyObject(reply))
        if (((redisReply *)reply)->str) line_add(monitor, ((redisReply *)reply)->str);
    return NULL;
}

struct monitor *monitor_start(const struct suite *suite) {
    struct monitor *monitor = calloc(1, sizeof *monitor);
    assert_non_null(monitor);
    monitor->redis = redisConnectUnix(suite->redis.socket);
    assert_true(monitor->redis && !monitor->redis->err);
    redisReply *reply = redisCommand(monitor->redis, "MONITOR");
    assert_true(reply && reply->type == REDIS_REPLY_STATUS);
    freeReplyObject(reply);
    assert_int_equal(pthread_mutex_init(&monitor->lock, NULL), 0);
    assert_int_equal(pthread_create(&monitor->thread, NULL, monitor_run, monitor), 0);
    return monitor;
}

void monitor_stop(struct monitor *monitor) {
    (void)shutdown(monitor->redis->fd, SHUT_RDWR);
    assert_int_equal(pthread_join(monitor->thread, NULL), 0);
    redisFree(monitor->redis);
    for (uint32_t i = 0; i < monitor->count; i++)
        free(monitor->lines[i]);
    (void)pthread_mutex_destroy(&monitor->lock);
    free(monitor);
}

/* The quoted words of a line, escapes as they stand; a word too long is cut. */
static void words_split(const char *line, struct monitor_words *out) {
    out->count = 0;
    for (const char *at = strchr(line, '"'); at && out->count < MONITOR_WORDS_MAX;
         at = strchr(at, '"')) {
        char *word = out->at[out->count++];
        size_t len = 0;
        for (at++; *at && *at != '"'; at++) {
            if (*at == '\\' && at[1]) at++;
            if (len + 1 < sizeof out->at[0]) word[len++] = *at;
        }
        word[len] = 0;
        at += *at == '"';
    }
}

static bool ends_with(const char *text, const char *end) {
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static bool is_append(const struct monitor_words *words, const char *generation) {
    return words->count > KEYS_AT + 5 && strcmp(words->at[0], "FCALL") == 0 &&
           strcmp(words->at[1], "fx3_append") == 0 && ends_with(words->at[KEYS_AT], generation);
}

static bool is_entry(const struct monitor_words *words, const char *generation) {
    char key[64];
    (void)snprintf(key, sizeof key, ":log:%s", generation);
    return words->count > 2 && strcasecmp(words->at[0], "xadd") == 0 &&
           ends_with(words->at[1], key);
}

static void append_add(struct monitor_log *log, const struct monitor_words *words, uint32_t line) {
    uint32_t keys = (uint32_t)strtoul(words->at[2], NULL, 10);
    FX_ASSERT(log->append_count < MONITOR_CALLS_MAX && keys < 8);
    log->appends[log->append_count++] =
        (struct monitor_append){.epoch = (uint32_t)strtoul(words->at[KEYS_AT + keys + 1], NULL, 10),
                                .first = log->entry_count,
                                .line = line};
}

static void entry_add(struct monitor_log *log, const char *id) {
    FX_ASSERT(log->entry_count < MONITOR_CALLS_MAX);
    (void)snprintf(log->entries[log->entry_count++], MONITOR_ENTRY_MAX, "%s", id);
    log->appends[log->append_count - 1].count++;
}

void monitor_read(struct monitor *monitor, const char *generation, struct monitor_log *out) {
    bool inside = false; /* the lines between a call and the next client's are the call's own */
    *out = (struct monitor_log){0};
    (void)pthread_mutex_lock(&monitor->lock);
    for (uint32_t i = 0; i < monitor->count; i++) {
        struct monitor_words words;
        words_split(monitor->lines[i], &words);
        if (!strstr(monitor->lines[i], " lua]")) {
            inside = is_append(&words, generation);
            if (inside) append_add(out, &words, i);
        } else if (inside && is_entry(&words, generation)) {
            entry_add(out, words.at[2]);
        }
    }
    (void)pthread_mutex_unlock(&monitor->lock);
}

void monitor_words(struct monitor *monitor, uint32_t line, struct monitor_words *out) {
    (void)pthread_mutex_lock(&monitor->lock);
    FX_ASSERT(line < monitor->count);
    words_split(monitor->lines[line], out);
    (void)pthread_mutex_unlock(&monitor->lock);
}
