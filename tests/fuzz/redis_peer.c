#include "tests/fuzz/redis_peer.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { TURNS = 8, GREETING_ROUNDS_MAX = 64 };

static int listener_ = -1;
static char url_[64];

/* The socket's name is removed at once; what is left is an open file that leads to it. */
static void listen_once(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char folder[] = "/tmp/fx-fuzz-XXXXXX";
    if (listener_ >= 0) return;
    FX_ASSERT(mkdtemp(folder));
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/s", folder);
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    FX_ASSERT(listener_ >= 0);
    FX_ASSERT(bind(listener_, (const struct sockaddr *)&address, sizeof address) == 0);
    FX_ASSERT(listen(listener_, 16) == 0);
    int name = open(address.sun_path, O_PATH | O_CLOEXEC);
    FX_ASSERT(name >= 0 && unlink(address.sun_path) == 0 && rmdir(folder) == 0);
    (void)snprintf(url_, sizeof url_, "unix:///proc/self/fd/%d", name);
}

static void turn(const struct redis_peer *peer) {
    for (int i = 0; i < TURNS; i++)
        (void)event_base_loop(peer->base, EVLOOP_NONBLOCK);
}

static int take_connection(const struct redis_peer *peer) {
    turn(peer);
    int fd = accept4(listener_, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    turn(peer);
    return fd;
}

/* One "nothing" for each command that has come. */
static void answer_commands(const struct redis_peer *peer, redisReader *reader) {
    char bytes[16384];
    void *command = NULL;
    ssize_t len = recv(peer->command, bytes, sizeof bytes, 0);
    if (len <= 0) return;
    FX_ASSERT(redisReaderFeed(reader, bytes, (size_t)len) == REDIS_OK);
    while (redisReaderGetReply(reader, &command) == REDIS_OK && command) {
        freeReplyObject(command);
        FX_ASSERT(send(peer->command, "*0\r\n", 4, MSG_NOSIGNAL) == 4);
    }
}

void redis_peer_open(struct redis_peer *peer) {
    fx_error err = {0};
    listen_once();
    *peer = (struct redis_peer){.base = event_base_new(), .command = -1, .push = -1};
    FX_ASSERT(peer->base);
    FX_ASSERT(fx_redis_open(&(struct fx_redis_opts){.base = peer->base, .url = url_}, &peer->redis,
                            &err));
    peer->command = take_connection(peer);
    FX_ASSERT(peer->command >= 0);
    redisReader *reader = redisReaderCreate();
    FX_ASSERT(reader);
    for (int i = 0; i < GREETING_ROUNDS_MAX && !fx_redis_ready(peer->redis); i++) {
        answer_commands(peer, reader);
        turn(peer);
    }
    redisReaderFree(reader);
    FX_ASSERT(fx_redis_ready(peer->redis));
}

static void drain(int fd) {
    char bytes[16384];
    while (recv(fd, bytes, sizeof bytes, 0) > 0)
        ;
}

void redis_peer_say(struct redis_peer *peer, int fd, const uint8_t *bytes, size_t len,
                    size_t piece) {
    for (size_t i = 0; i < len && fd >= 0; i += piece) {
        size_t part = piece < len - i ? piece : len - i;
        if (send(fd, bytes + i, part, MSG_NOSIGNAL) < 0) return; /* the client hung up */
        turn(peer);
        drain(fd);
    }
}

void redis_peer_accept_push(struct redis_peer *peer) {
    peer->push = take_connection(peer);
}

static void hang_up(int *fd) {
    if (*fd >= 0) (void)close(*fd);
    *fd = -1;
}

void redis_peer_hang_up(struct redis_peer *peer) {
    hang_up(&peer->command);
    hang_up(&peer->push);
    turn(peer);
}

void redis_peer_close(struct redis_peer *peer) {
    hang_up(&peer->command);
    hang_up(&peer->push);
    fx_redis_free(peer->redis);
    event_base_free(peer->base);
    for (int fd; (fd = accept4(listener_, NULL, NULL, SOCK_CLOEXEC)) >= 0;)
        (void)close(fd); /* dialled again meanwhile */
}
