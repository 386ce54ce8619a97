/* The source as Redis: RESP2 on a unix socket, what a gateway asks and nothing else. What it does
 * not know it refuses, and then the measurement fails. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "common/base/heap.h"
#include "tests/bench/source_internal.h"

enum {
    WORDS_MAX = 64,
    READ_BYTES = 256 * 1024,
    IN_BYTES_MAX = 8 << 20,
    OUT_BYTES_MAX = 64 << 20,
    BACKLOG = 64,
    HEX = 2 * SOURCE_ID_BYTES,
};

/* -- writing -- */

static void put(struct source_link *link, const void *bytes, size_t len) {
    if (link->out_len + len > link->out_cap) {
        link->out_cap = 2 * (link->out_len + len);
        FX_ASSERT(link->out_cap <= OUT_BYTES_MAX);
        link->out = fx_realloc(link->out, link->out_cap, 1);
        FX_ASSERT(link->out);
    }
    memcpy(link->out + link->out_len, bytes, len);
    link->out_len += len;
}

static void put_text(struct source_link *link, const char *text) {
    put(link, text, strlen(text));
}

static void put_number(struct source_link *link, char kind, uint64_t value) {
    char digits[24], *at = digits + sizeof digits;
    *--at = '\n';
    *--at = '\r';
    do
        *--at = (char)('0' + value % 10);
    while (value /= 10);
    *--at = kind;
    put(link, at, (size_t)(digits + sizeof digits - at));
}

static void put_bulk(struct source_link *link, fx_span text) {
    put_number(link, '$', text.len);
    put(link, text.at, text.len);
    put(link, "\r\n", 2);
}

static bool link_flush(struct source_link *link) {
    while (link->out_at < link->out_len) {
        ssize_t sent = send(link->fd, link->out + link->out_at, link->out_len - link->out_at,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0) break; /* full; an end is seen by the reader */
        link->out_at += (size_t)sent;
    }
    bool all = link->out_at == link->out_len;
    if (all) link->out_at = link->out_len = 0;
    if (!all) (void)event_add(link->writable, NULL);
    return all;
}

bool source__flush(struct source *source) {
    bool all = true;
    for (struct source_link *link = source->links; link; link = link->next)
        all &= link_flush(link);
    return all;
}

/* -- generations' channels and keys: fx:{m7}:hint:<hex> -- */

static void hex_put(const uint8_t *id, char *out) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < SOURCE_ID_BYTES; i++) {
        out[2 * i] = digits[id[i] >> 4];
        out[2 * i + 1] = digits[id[i] & 15];
    }
}

static int digit_of(uint8_t c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The generation whose id a key ends with; NULL: none. */
static struct source_gen *gen_of(struct source *source, fx_span key) {
    uint8_t id[SOURCE_ID_BYTES];
    if (key.len <= HEX) return NULL;
    const uint8_t *hex = key.at + key.len - HEX;
    for (int i = 0; i < SOURCE_ID_BYTES; i++) {
        int high = digit_of(hex[2 * i]), low = digit_of(hex[2 * i + 1]);
        if (high < 0 || low < 0) return NULL;
        id[i] = (uint8_t)(high << 4 | low);
    }
    return source__find(source, id);
}

static void message_put(const struct source_gen *gen, fx_span payload) {
    char channel[] = "fx:{m7}:hint:0123456789abcdef0123456789abcdef";
    struct source_link *link = gen->watcher;
    if (!link) return;
    hex_put(gen->id, channel + sizeof channel - 1 - HEX);
    put_text(link, "*3\r\n$7\r\nmessage\r\n");
    put_bulk(link, (fx_span){(const uint8_t *)channel, sizeof channel - 1});
    put_bulk(link, payload);
}

void source__tell_token(struct source_gen *gen) {
    char text[48];
    int len = snprintf(text, sizeof text, "%u 0 %d", gen->n, source_letter(gen->n));
    message_put(gen, (fx_span){(const uint8_t *)text, (size_t)len});
}

void source__tell_finish(struct source_gen *gen, uint32_t reason) {
    char text[48];
    int len = snprintf(text, sizeof text, "%u %u ", gen->n + 1, reason);
    message_put(gen, (fx_span){(const uint8_t *)text, (size_t)len});
}

/* -- commands -- */

struct words {
    size_t count;
    fx_span at[WORDS_MAX];
};

static void do_ok(struct source_link *link, const struct words *words) {
    (void)words;
    put_text(link, "+OK\r\n");
}

static void do_ping(struct source_link *link, const struct words *words) {
    (void)words;
    put_text(link, link->channels ? "*2\r\n$4\r\npong\r\n$0\r\n\r\n" : "+PONG\r\n");
}

static void do_config(struct source_link *link, const struct words *words) {
    (void)words;
    put_text(link, "*6\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n$10\r\nappendonly\r\n"
                   "$3\r\nyes\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n");
}

static void do_info(struct source_link *link, const struct words *words) {
    (void)words;
    put_bulk(link, fx_span_str("# Server\r\nredis_version:7.0.15\r\nrun_id:bench\r\n"));
}

static void subscription_put(struct source_link *link, const char *kind, fx_span channel) {
    put_text(link, "*3\r\n");
    put_bulk(link, fx_span_str(kind));
    put_bulk(link, channel);
    put_number(link, ':', link->channels);
}

static void do_subscribe(struct source_link *link, const struct words *words) {
    for (size_t i = 1; i < words->count; i++) {
        struct source_gen *gen = gen_of(link->source, words->at[i]);
        if (gen) gen->watcher = link;
        link->channels++;
        subscription_put(link, "subscribe", words->at[i]);
    }
}

static void do_unsubscribe(struct source_link *link, const struct words *words) {
    for (size_t i = 1; i < words->count; i++) {
        struct source_gen *gen = gen_of(link->source, words->at[i]);
        if (gen && gen->watcher == link) gen->watcher = NULL;
        link->channels--;
        subscription_put(link, "unsubscribe", words->at[i]);
    }
}

static uint32_t number_of(fx_span text) {
    uint32_t value = 0;
    for (size_t i = 0; i < text.len && text.at[i] >= '0' && text.at[i] <= '9'; i++)
        value = value * 10 + (uint32_t)(text.at[i] - '0');
    return value;
}

static void entry_put(struct source_link *link, uint32_t n, bool finish) {
    char id[24], value[16];
    (void)snprintf(id, sizeof id, "%u-%d", n, finish);
    (void)snprintf(value, sizeof value, "%d", finish ? 2 : source_letter(n));
    put_text(link, "*2\r\n");
    put_bulk(link, fx_span_str(id));
    put_text(link, finish ? "*4\r\n$1\r\nf\r\n" : "*2\r\n$1\r\nt\r\n");
    put_bulk(link, fx_span_str(value));
    if (finish) put_text(link, "$1\r\nd\r\n$0\r\n\r\n");
}

/* XRANGE log <after>-1 + COUNT max */
static void do_xrange(struct source_link *link, const struct words *words) {
    const struct source_gen *gen = words->count == 6 ? gen_of(link->source, words->at[1]) : NULL;
    uint32_t after = words->count == 6 ? number_of(words->at[2]) : 0;
    uint32_t max = words->count == 6 ? number_of(words->at[5]) : 0;
    uint32_t tokens = gen && gen->n > after ? gen->n - after : 0;
    bool finish = gen && !gen->runs && tokens < max;
    if (tokens > max) tokens = max;
    put_number(link, '*', tokens + finish);
    for (uint32_t i = 1; i <= tokens; i++)
        entry_put(link, after + i, false);
    if (finish) entry_put(link, gen->n, true);
}

/* HMGET gen state n finish: 3 it runs, 4 it finished */
static void do_hmget(struct source_link *link, const struct words *words) {
    const struct source_gen *gen = gen_of(link->source, words->at[1]);
    char text[16];
    if (!gen || words->count != 5) {
        put_text(link, "*3\r\n$-1\r\n$-1\r\n$-1\r\n");
        return;
    }
    put_text(link, gen->runs ? "*3\r\n$1\r\n3\r\n" : "*3\r\n$1\r\n4\r\n");
    (void)snprintf(text, sizeof text, "%u", gen->n);
    put_bulk(link, fx_span_str(text));
    put_text(link, gen->runs ? "$-1\r\n" : "$1\r\n2\r\n");
}

static void do_unknown(struct source_link *link, const struct words *words) {
    if (!atomic_exchange(&link->source->opts->times->odd, true))
        (void)fprintf(stderr, "token source: no command '%.*s' here\n", (int)words->at[0].len,
                      (const char *)words->at[0].at);
    put_text(link, "-ERR unknown command\r\n");
}

static const struct {
    const char *name;
    void (*run)(struct source_link *link, const struct words *words);
} commands[] = {
    {"SUBSCRIBE",   do_subscribe  },
    {"UNSUBSCRIBE", do_unsubscribe},
    {"XRANGE",      do_xrange     },
    {"HMGET",       do_hmget      },
    {"PING",        do_ping       },
    {"CONFIG",      do_config     },
    {"FUNCTION",    do_ok         },
    {"INFO",        do_info       },
    {"SELECT",      do_ok         },
};

static void command_run(struct source_link *link, const struct words *words) {
    for (size_t i = 0; i < FX_COUNT(commands); i++) {
        size_t len = strlen(commands[i].name);
        if (words->at[0].len != len ||
            strncasecmp((const char *)words->at[0].at, commands[i].name, len) != 0)
            continue;
        commands[i].run(link, words);
        return;
    }
    do_unknown(link, words);
}

/* -- reading -- */

/* "*3\r\n", "$5\r\n": false when it is not all there. */
static bool header_read(fx_span *rest, char kind, size_t *out) {
    const uint8_t *end = memchr(rest->at, '\n', rest->len);
    if (!end) return false;
    FX_ASSERT(rest->at[0] == (uint8_t)kind);
    *out = number_of((fx_span){rest->at + 1, rest->len - 1});
    *rest = (fx_span){end + 1, rest->len - (size_t)(end + 1 - rest->at)};
    return true;
}

static bool words_read(fx_span *rest, struct words *out) {
    fx_span left = *rest;
    if (!left.len || !header_read(&left, '*', &out->count)) return false;
    FX_ASSERT(out->count > 0 && out->count <= WORDS_MAX);
    for (size_t i = 0; i < out->count; i++) {
        size_t len;
        if (!left.len || !header_read(&left, '$', &len) || left.len < len + 2) return false;
        out->at[i] = (fx_span){left.at, len};
        left = (fx_span){left.at + len + 2, left.len - len - 2};
    }
    *rest = left;
    return true;
}

static void link_close(struct source_link *link) {
    struct source *source = link->source;
    struct source_link **at = &source->links;
    for (uint32_t i = 0; i < SOURCE_GENS; i++)
        if (source->gens[i].watcher == link) source->gens[i].watcher = NULL;
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    event_free(link->readable);
    event_free(link->writable);
    (void)close(link->fd);
    free(link->in);
    free(link->out);
    free(link);
}

static void commands_run(struct source_link *link) {
    fx_span rest = {link->in, link->in_len};
    struct words words;
    while (words_read(&rest, &words))
        command_run(link, &words);
    if (rest.len) memmove(link->in, rest.at, rest.len);
    link->in_len = rest.len;
}

static void on_readable(evutil_socket_t fd, short what, void *arg) {
    struct source_link *link = arg;
    (void)what;
    if (link->in_cap - link->in_len < READ_BYTES) {
        link->in_cap += READ_BYTES;
        FX_ASSERT(link->in_cap <= IN_BYTES_MAX);
        link->in = fx_realloc(link->in, link->in_cap, 1);
        FX_ASSERT(link->in);
    }
    ssize_t got = recv(fd, link->in + link->in_len, link->in_cap - link->in_len, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        link_close(link);
        return;
    }
    link->in_len += (size_t)got;
    commands_run(link);
    (void)link_flush(link);
}

static void on_writable(evutil_socket_t fd, short what, void *arg) {
    struct source_link *link = arg;
    (void)fd, (void)what;
    if (link_flush(link)) event_active(link->source->pump, EV_TIMEOUT, 1);
}

/* -- life -- */

static void on_connect(evutil_socket_t listener, short what, void *arg) {
    struct source *source = arg;
    struct event_base *base = fx_loop_base(source->loop);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    (void)what;
    if (fd < 0) return;
    struct source_link *link = fx_alloc(1, sizeof *link);
    FX_ASSERT(link);
    *link = (struct source_link){.next = source->links, .source = source, .fd = fd};
    link->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, link);
    link->writable = event_new(base, fd, EV_WRITE, on_writable, link);
    FX_ASSERT(link->readable && link->writable && event_add(link->readable, NULL) == 0);
    source->links = link;
}

bool source__listen(struct source *source, fx_error *err) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", source->opts->socket);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, BACKLOG) != 0)
        return fx_fail_errno(err, "listen on '%s'", address.sun_path);
    source->listening =
        event_new(fx_loop_base(source->loop), fd, EV_READ | EV_PERSIST, on_connect, source);
    if (source->listening && event_add(source->listening, NULL) == 0) return true;
    return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a listener");
}
