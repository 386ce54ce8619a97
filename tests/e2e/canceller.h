#pragma once
/* Requests to a gateway that are cancelled: over HTTP and gRPC, by leaving and by asking for it. */
#include <stdatomic.h>
#include "common/rpc/client.h"
#include "common/rpc/loop.h"
#include "tests/e2e/suite.h"

/** How a request comes, and how it is cancelled. */
enum cancel_way {
    LEAVE_STREAM,
    LEAVE_WHOLE,
    LEAVE_TWO, /* n=2 */
    POST_STREAM,
    POST_WHOLE, /* while it waits for its answer in one piece */
    POST_TWO,   /* n=2 */
    POST_TWICE,
    GRPC,
};

struct cancel_ask {
    const char *prompt;
    int tokens;
    enum cancel_way way;
};

/** One request under way. */
struct canceller {
    const struct suite *suite;
    struct cancel_ask ask;
    struct http_conn conn;
    fx_loop *loop;
    fx_client *client;
    fx_client_call *call; /* on the loop; NULL: none, or it has ended */
    _Atomic bool done;
    enum fx_code code; /* of a call that is done */
};
/** Sends it. @own caller, canceller_close() */
void canceller_begin(struct canceller *canceller, const struct suite *suite,
                     const struct cancel_ask *ask);
/** `name`: the answer's id, for the ways that ask by it. */
void canceller_cancel(struct canceller *canceller, const char *name);
/** Who has not left is told: a cancel, or, when `finished`, its answer. */
void canceller_check(struct canceller *canceller, bool finished);
void canceller_close(struct canceller *canceller);

uint32_t cancel_choices(enum cancel_way way);
/** POST .../cancel with the suite's key; its status. */
unsigned cancel_post(const struct suite *suite, const char *name);
