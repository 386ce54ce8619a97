#pragma once
#include <event2/event.h>
#include "common/queue/redis.h"

/** A Redis that says what it is told to: the other end of a client's connections. Each peer serves
 *  one client; its socket has no name in the file system. */
struct redis_peer {
    struct event_base *base;
    fx_redis *redis;   /* greeted and ready */
    int command, push; /* the server's ends; -1: not connected */
};

/** Opens a client on a loop of its own and answers its greeting. */
void redis_peer_open(struct redis_peer *peer);
/** The server says `bytes`, at once or in pieces of `piece`; the client reads. `fd` -1: nothing. */
void redis_peer_say(struct redis_peer *peer, int fd, const uint8_t *bytes, size_t len,
                    size_t piece);
/** Takes the second connection, made at the first subscription. */
void redis_peer_accept_push(struct redis_peer *peer);
/** Both connections close; the client sees it. */
void redis_peer_hang_up(struct redis_peer *peer);
void redis_peer_close(struct redis_peer *peer);
