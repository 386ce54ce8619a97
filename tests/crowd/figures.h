#pragma once
/* What a run came to. */
#include "tests/crowd/client.h"

struct figures {
    uint32_t streams, requests; /* answered as recorded */
    uint32_t failed, differing; /* no whole answer; another one than recorded */
    uint32_t came_back, asked_again;
    uint64_t tokens;            /* of answers that have ended, failed ones too */
    double *gaps_ms, *first_ms; /* between two chunks; from the request to the first one */
    uint32_t gap_count, gap_cap, first_count, first_cap;
    char failure[CLIENT_WHY_MAX + CLIENT_NAME_MAX]; /* the first one */
};

/** Counts an answer that has ended; `recorded` NULL: any whole answer will do. False: `why` says
 * how it failed, or differs. */
bool figures_take(struct figures *figures, const struct client *got, const struct client *recorded,
                  char why[CLIENT_WHY_MAX]);
/** One line of JSON to stdout. */
void figures_print(struct figures *figures, double seconds);
void figures_free(struct figures *figures);
