#include "tests/chaos/proxy.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/error.h"

enum { LINKS_MAX = 16, PENDING_MAX = 4096, READ_BYTES = 65536, TICK_MS = 5, HELD_MS = 2500 };

struct buffer {
    uint8_t *at;
    size_t len, cap;
};

/* A call whose reply means something to us. */
struct pending {
    uint64_t number; /* of the link's commands */
    bool trapped, pull;
    char finishes[RESP_ID_LEN + 1];
};

struct link {
    int client, redis; /* client 0: a free place */
    struct buffer up, down;
    bool subscriber, held_up, held_down;
    uint64_t asked, answered;
    struct pending pending[PENDING_MAX];
    size_t pending_first, pending_count;
};

struct held {
    char id[RESP_ID_LEN + 1];
    uint64_t seen_ms;
    bool appends;
};

struct proxy {
    char redis[108];
    int listener, wake;
    pthread_t thread;
    struct link links[LINKS_MAX];

    pthread_mutex_t lock; /* all below */
    bool quit, release, swallow, armed;
    struct proxy_trap trap;
    uint32_t met;
    uint64_t spring_at_ms; /* 0: nothing is due */
    uint64_t sprung_us, swallowed;
    struct proxy_ids sprung_held;
    struct held held[PROXY_IDS_MAX];
};

/* -- bytes -- */

static bool buffer_read(struct buffer *buffer, int fd) {
    if (buffer->cap - buffer->len < READ_BYTES) {
        buffer->cap = 2 * buffer->cap + READ_BYTES;
        buffer->at = realloc(buffer->at, buffer->cap);
        FX_ASSERT(buffer->at);
    }
    ssize_t got = recv(fd, buffer->at + buffer->len, buffer->cap - buffer->len, MSG_DONTWAIT);
    if (got > 0) buffer->len += (size_t)got;
    return got > 0;
}

static void buffer_eat(struct buffer *buffer, size_t len) {
    memmove(buffer->at, buffer->at + len, buffer->len - len);
    buffer->len -= len;
}

static void send_all(int fd, fx_span bytes) {
    while (bytes.len) {
        ssize_t sent = send(fd, bytes.at, bytes.len, MSG_NOSIGNAL);
        if (sent <= 0) return; /* the next read tells */
        bytes = (fx_span){bytes.at + sent, bytes.len - (size_t)sent};
    }
}

/* -- what the process holds; under the lock -- */

static struct held *held_find(struct proxy *proxy, const char *id) {
    for (uint32_t i = 0; i < PROXY_IDS_MAX; i++)
        if (strcmp(proxy->held[i].id, id) == 0) return &proxy->held[i];
    return NULL;
}

static struct held *held_add(struct proxy *proxy, const char *id) {
    uint64_t now_ms = fx_clock_ms();
    struct held *place = held_find(proxy, id);
    bool appends = place && place->appends;
    for (uint32_t i = 0; !place && i < PROXY_IDS_MAX; i++)
        if (now_ms - proxy->held[i].seen_ms > HELD_MS) place = &proxy->held[i];
    FX_ASSERT(place);
    *place = (struct held){.seen_ms = now_ms, .appends = appends};
    memcpy(place->id, id, sizeof place->id);
    return place;
}

static void held_remove(struct proxy *proxy, const char *id) {
    struct held *place = held_find(proxy, id);
    if (place) *place = (struct held){0};
}

static void held_list(const struct proxy *proxy, struct proxy_ids *out) {
    out->count = out->fresh = 0;
    for (uint32_t i = 0; i < PROXY_IDS_MAX; i++) {
        const struct held *held = &proxy->held[i];
        if (!*held->id || fx_clock_ms() - held->seen_ms > HELD_MS) continue;
        out->fresh += !held->appends;
        memcpy(out->at[out->count++], held->id, sizeof out->at[0]);
    }
}

/* -- the trap; under the lock -- */

static void spring(struct proxy *proxy) {
    held_list(proxy, &proxy->sprung_held);
    proxy->sprung_us = fx_clock_us();
    proxy->spring_at_ms = 0;
    (void)kill(proxy->trap.pid, proxy->trap.signal);
}

static bool is_call(const fx_span words[], size_t count, const char *call) {
    size_t len = strlen(call);
    if (count < 5 || !fx_span_eq_str(words[0], "FCALL") || words[1].len <= len) return false;
    fx_span end = {words[1].at + words[1].len - len, len};
    return fx_span_eq_str(end, call) && end.at[-1] == '_';
}

/* Its turn? Then what waits for it is held back. */
static bool trap_springs(struct proxy *proxy, enum proxy_when when) {
    if (!proxy->armed || proxy->trap.when != when || ++proxy->met < proxy->trap.nth) return false;
    proxy->armed = false;
    if (proxy->trap.once && atomic_exchange(proxy->trap.once, true)) return false;
    if (when == PROXY_PASSED)
        proxy->spring_at_ms = fx_clock_ms() + proxy->trap.delay_ms;
    else
        spring(proxy);
    return when != PROXY_PASSED;
}

/* -- commands -- */

/* Where the arguments of a function's call begin. */
static size_t args_at(const fx_span words[], size_t count) {
    return count > 2 ? 3 + strtoul((const char *)words[2].at, NULL, 10) : count;
}

static void id_of(const fx_span words[], size_t count, char id[RESP_ID_LEN + 1]) {
    size_t at = args_at(words, count);
    *id = 0;
    if (at >= count || words[at].len != RESP_ID_LEN) return;
    memcpy(id, words[at].at, RESP_ID_LEN);
    id[RESP_ID_LEN] = 0;
}

/* Is the trap set for this call? The arguments of an append are id, epoch, first token, ... */
static bool trap_matches(const struct proxy *proxy, const fx_span words[], size_t count) {
    size_t first = args_at(words, count) + 2;
    if (!proxy->armed || !is_call(words, count, proxy->trap.call)) return false;
    return first >= count || !proxy->trap.token_min ||
           strtoul((const char *)words[first].at, NULL, 10) >= proxy->trap.token_min;
}

static void pending_add(struct link *link, struct pending pending) {
    FX_ASSERT(link->pending_count < PENDING_MAX);
    link->pending[(link->pending_first + link->pending_count++) % PENDING_MAX] = pending;
}

/* False: the trap keeps it. */
static bool command_passes(struct proxy *proxy, struct link *link, fx_span command) {
    fx_span words[RESP_WORDS_MAX];
    size_t count = resp_words(command, words);
    struct pending pending = {.number = link->asked + 1};
    char id[RESP_ID_LEN + 1] = "";
    if (count && fx_span_eq_str(words[0], "SUBSCRIBE")) link->subscriber = true;
    bool appends = is_call(words, count, "append"), finishes = is_call(words, count, "finish");
    id_of(words, count, id);
    bool matches = trap_matches(proxy, words, count);
    if (matches && trap_springs(proxy, PROXY_BEFORE)) return false;
    if (*id && (appends || is_call(words, count, "renew"))) held_add(proxy, id)->appends |= appends;
    pending.trapped = matches && proxy->trap.when != PROXY_BEFORE;
    pending.pull = is_call(words, count, "pull");
    if (finishes) memcpy(pending.finishes, id, sizeof id);
    if (pending.trapped || pending.pull || finishes) pending_add(link, pending);
    link->asked++;
    return true;
}

static void pass_up(struct proxy *proxy, struct link *link) {
    size_t len;
    while (!link->held_up && (len = resp_length((fx_span){link->up.at, link->up.len}))) {
        fx_span command = {link->up.at, len};
        (void)pthread_mutex_lock(&proxy->lock);
        link->held_up = !command_passes(proxy, link, command);
        (void)pthread_mutex_unlock(&proxy->lock);
        if (link->held_up) return;
        send_all(link->redis, command);
        buffer_eat(&link->up, len);
    }
}

/* -- replies -- */

/* An answer that brought nothing is no pull. */
static bool pulled(struct proxy *proxy, fx_span reply) {
    char id[RESP_ID_LEN + 1];
    size_t at = 0;
    bool any = false;
    for (; resp_next_id(reply, &at, id); any = true)
        (void)held_add(proxy, id);
    return any;
}

/* False: the trap keeps it. */
static bool reply_passes(struct proxy *proxy, struct link *link, fx_span reply) {
    struct pending *pending = &link->pending[link->pending_first];
    link->answered++;
    if (!link->pending_count || pending->number != link->answered) return true;
    link->pending_first = (link->pending_first + 1) % PENDING_MAX;
    link->pending_count--;
    bool met = !pending->pull || pulled(proxy, reply);
    if (*pending->finishes) held_remove(proxy, pending->finishes);
    if (!pending->trapped || !met) return true;
    return !trap_springs(proxy, PROXY_AFTER) && !trap_springs(proxy, PROXY_PASSED);
}

static bool is_published(fx_span reply) {
    static const char head[] = "*3\r\n$7\r\nmessage\r\n";
    return reply.len >= sizeof head - 1 && memcmp(reply.at, head, sizeof head - 1) == 0;
}

static void pass_down(struct proxy *proxy, struct link *link) {
    size_t len;
    while (!link->held_down && (len = resp_length((fx_span){link->down.at, link->down.len}))) {
        fx_span reply = {link->down.at, len};
        (void)pthread_mutex_lock(&proxy->lock);
        bool swallowed = link->subscriber && proxy->swallow && is_published(reply);
        proxy->swallowed += swallowed;
        if (!link->subscriber) link->held_down = !reply_passes(proxy, link, reply);
        (void)pthread_mutex_unlock(&proxy->lock);
        if (link->held_down) return;
        if (!swallowed) send_all(link->client, reply);
        buffer_eat(&link->down, len);
    }
}

/* -- links -- */

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FX_ASSERT(fd > 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    (void)close(fd);
    return -1;
}

static void link_close(struct link *link) {
    (void)close(link->client);
    (void)close(link->redis);
    free(link->up.at);
    free(link->down.at);
    *link = (struct link){0};
}

static void link_accept(struct proxy *proxy) {
    int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
    int redis = client >= 0 ? connect_to(proxy->redis) : -1;
    if (client < 0) return;
    if (redis < 0) {
        (void)close(client); /* as if Redis were not there, which it isn't */
        return;
    }
    struct link *link = proxy->links;
    while (link < proxy->links + LINKS_MAX && link->client)
        link++;
    FX_ASSERT(link < proxy->links + LINKS_MAX);
    link->client = client;
    link->redis = redis;
}

static void link_serve(struct proxy *proxy, struct link *link, short client, short redis) {
    bool up = !(client & POLLIN) || buffer_read(&link->up, link->client);
    bool down = !(redis & POLLIN) || buffer_read(&link->down, link->redis);
    pass_up(proxy, link);
    pass_down(proxy, link);
    if (!up || !down || ((client | redis) & (POLLERR | POLLNVAL)) ||
        ((client & POLLHUP) && !(client & POLLIN)) || ((redis & POLLHUP) && !(redis & POLLIN)))
        link_close(link);
}

/* -- the thread -- */

/* What another thread asked for, and what is due. */
static bool orders_take(struct proxy *proxy) {
    uint64_t count;
    ssize_t ignored = read(proxy->wake, &count, sizeof count);
    (void)ignored;
    (void)pthread_mutex_lock(&proxy->lock);
    bool quit = proxy->quit, release = proxy->release;
    proxy->release = false;
    if (proxy->spring_at_ms && fx_clock_ms() >= proxy->spring_at_ms) spring(proxy);
    (void)pthread_mutex_unlock(&proxy->lock);
    for (uint32_t i = 0; release && i < LINKS_MAX; i++) {
        struct link *link = &proxy->links[i];
        if (link->held_down) { /* the reply was counted already */
            size_t len = resp_length((fx_span){link->down.at, link->down.len});
            send_all(link->client, (fx_span){link->down.at, len});
            buffer_eat(&link->down, len);
        }
        link->held_up = link->held_down = false;
    }
    return !quit;
}

static void *run(void *ctx) {
    struct proxy *proxy = ctx;
    struct pollfd polls[2 + 2 * LINKS_MAX] = {
        {proxy->wake,     POLLIN, 0},
        {proxy->listener, POLLIN, 0}
    };
    while (orders_take(proxy)) {
        for (uint32_t i = 0; i < LINKS_MAX; i++) {
            const struct link *link = &proxy->links[i];
            polls[2 + 2 * i] =
                (struct pollfd){link->client ? link->client : -1, link->held_up ? 0 : POLLIN, 0};
            polls[3 + 2 * i] =
                (struct pollfd){link->client ? link->redis : -1, link->held_down ? 0 : POLLIN, 0};
        }
        if (poll(polls, FX_TEST_COUNT(polls), TICK_MS) < 0) continue;
        for (uint32_t i = 0; i < LINKS_MAX; i++)
            if (proxy->links[i].client)
                link_serve(proxy, &proxy->links[i], polls[2 + 2 * i].revents,
                           polls[3 + 2 * i].revents);
        if (polls[1].revents) link_accept(proxy);
    }
    return NULL;
}

/* -- for the test's thread -- */

struct proxy *proxy_start(const char *path, const char *redis) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct proxy *proxy = calloc(1, sizeof *proxy);
    assert_non_null(proxy);
    (void)snprintf(proxy->redis, sizeof proxy->redis, "%s", redis);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    proxy->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    proxy->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(proxy->wake > 0 && proxy->listener > 0);
    assert_int_equal(bind(proxy->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(proxy->listener, LINKS_MAX), 0);
    assert_int_equal(pthread_mutex_init(&proxy->lock, NULL), 0);
    assert_int_equal(pthread_create(&proxy->thread, NULL, run, proxy), 0);
    return proxy;
}

static void lock(struct proxy *proxy) {
    (void)pthread_mutex_lock(&proxy->lock);
}

static void unlock(struct proxy *proxy) {
    uint64_t one = 1;
    (void)pthread_mutex_unlock(&proxy->lock);
    ssize_t ignored = write(proxy->wake, &one, sizeof one);
    (void)ignored;
}

void proxy_stop(struct proxy *proxy) {
    lock(proxy);
    proxy->quit = true;
    unlock(proxy);
    (void)pthread_join(proxy->thread, NULL);
    for (uint32_t i = 0; i < LINKS_MAX; i++)
        if (proxy->links[i].client) link_close(&proxy->links[i]);
    (void)close(proxy->listener);
    (void)close(proxy->wake);
    (void)pthread_mutex_destroy(&proxy->lock);
    free(proxy);
}

void proxy_arm(struct proxy *proxy, const struct proxy_trap *trap) {
    lock(proxy);
    proxy->trap = *trap;
    proxy->met = 0;
    proxy->sprung_us = proxy->spring_at_ms = 0;
    proxy->armed = true;
    unlock(proxy);
}

uint64_t proxy_sprung(struct proxy *proxy, struct proxy_ids *held) {
    lock(proxy);
    uint64_t sprung_us = proxy->sprung_us;
    if (sprung_us) *held = proxy->sprung_held;
    unlock(proxy);
    return sprung_us;
}

void proxy_disarm(struct proxy *proxy) {
    lock(proxy);
    proxy->armed = false;
    proxy->spring_at_ms = 0;
    unlock(proxy);
}

void proxy_release(struct proxy *proxy) {
    lock(proxy);
    proxy->release = true;
    unlock(proxy);
}

void proxy_held(struct proxy *proxy, struct proxy_ids *out) {
    lock(proxy);
    held_list(proxy, out);
    unlock(proxy);
}

void proxy_forget(struct proxy *proxy) {
    lock(proxy);
    memset(proxy->held, 0, sizeof proxy->held);
    unlock(proxy);
}

void proxy_swallow(struct proxy *proxy, bool swallow) {
    lock(proxy);
    proxy->swallow = swallow;
    unlock(proxy);
}

uint64_t proxy_swallowed(struct proxy *proxy) {
    lock(proxy);
    uint64_t swallowed = proxy->swallowed;
    unlock(proxy);
    return swallowed;
}

bool proxy_ids_have(const struct proxy_ids *ids, const char *id) {
    for (uint32_t i = 0; i < ids->count; i++)
        if (strcmp(ids->at[i], id) == 0) return true;
    return false;
}
