#pragma once
/* One client of the suite, on a thread of its own: it asks, comes back when its gateway dies
 * (unless it is to ask once), and keeps what it got and when. What it has got is all that is
 * judged. */
#include <pthread.h>
#include <stdatomic.h>
#include "tests/crowd/requests.h"
#include "tests/e2e/http_client.h"

enum { CLIENT_WHY_MAX = 256, CLIENT_NAME_MAX = 80, CLIENT_GATEWAYS_MAX = 2 };

enum client_phase {
    CLIENT_ASKING,  /* nobody has said yes yet */
    CLIENT_RUNNING, /* 200 came; or it is not streamed and its request was sent */
    CLIENT_ENDED,
};

struct client_opts {
    const struct request *request;
    const char *api_key; /* "fx-..." */
    const char *run;     /* makes its Idempotency-Key another than another run's */
    const char *host;    /* numeric; NULL: 127.0.0.1 */
    uint16_t ports[CLIENT_GATEWAYS_MAX];
    uint32_t port_count, first; /* which it asks first */
    uint32_t answer_ms;         /* of its whole life; 0: a minute */
    bool once; /* it neither asks again nor comes back: what is not an answer is a failure */
};

/** What came of one choice. */
struct client_choice {
    struct http_text text;
    char reason[16]; /* "": no end came */
    uint32_t tokens; /* by the last chunk that told */
};

struct client {
    struct client_opts opts;
    pthread_t thread;
    uint64_t end_ms; /* it waits no longer */
    _Atomic int phase;
    _Atomic uint32_t gateway;     /* whom it is connected to */
    _Atomic uint32_t chunk_count; /* with text, so far */
    _Atomic bool leave;           /* it shall give up on its gateway */
    bool sent_away;               /* its gateway ends, and said so: another has the rest */
    char name[CLIENT_NAME_MAX];   /* of its answer: chatcmpl-..., cmpl-... */
    char place[CLIENT_NAME_MAX];  /* the last whole event's id; "": events have none */
    char id[CLIENT_NAME_MAX];     /* of the event that is coming */
    struct client_choice choices[REQUEST_CHOICES_MAX];
    uint32_t usage; /* completion tokens of an answer in one piece */
    uint64_t asked_us;
    _Atomic uint64_t begun_us, ended_us; /* RUNNING, ENDED since */
    uint64_t *came_us;                   /* [chunk_count] when each chunk came */
    uint32_t came_cap;
    uint32_t asked_again, came_back; /* before it was admitted; after */
    bool repeated;                   /* a token came twice */
    bool done;                       /* [DONE], or the whole JSON */
    fx_error broken;                 /* how its last connection ended before its time */
    char why[CLIENT_WHY_MAX];        /* "": nothing went wrong */
};

/** Asks on a new thread. @own caller, client_free() */
void client_start(struct client *client, const struct client_opts *opts);
/** Nobody answers there: it turns to another gateway, as a client does when its time is up. */
void client_leave(struct client *client);
/** Until its answer has ended, well or not. */
void client_join(struct client *client);
void client_free(struct client *client);
/** Is it what an undisturbed one got? False: `why` says what differs. */
bool client_same(const struct client *got, const struct client *want, char why[CLIENT_WHY_MAX]);
