#pragma once
/* Many clients at a time: those that record, and those that must get the same again. */
#include "tests/crowd/figures.h"
#include "tests/crowd/texts.h"

enum { RUN_STREAMS_MAX = 256, RUN_REQUESTS_MAX = 1024 };

struct run_opts {
    const char *host, *key; /* numeric; "fx-..." */
    uint16_t port;
    uint32_t streams;   /* at a time */
    uint32_t rate;      /* requests a second */
    uint32_t answer_ms; /* one that takes longer has failed */
    bool resume;        /* they come back, and ask again where they are told to */
    bool once;          /* each recorded answer once; else again and again, until stdin ends */
};

/** Asks for all of `texts`, `streams` at a time, and fills in the answers. */
void run_record(const struct run_opts *opts, struct texts *texts, struct figures *out);
/** Says "begun" on stdout when every stream has had a token, "tokens N" when there are more, and
 *  waits for what runs when it ends. */
void run_compare(const struct run_opts *opts, const struct texts *texts, struct figures *out);
