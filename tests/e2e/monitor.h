#pragma once
/* Everything Redis is asked, in its order: who called fx3_append for a generation, and what each
 * call wrote. */
#include <stdbool.h>
#include <stdint.h>
#include "tests/e2e/suite.h"

enum { MONITOR_WORDS_MAX = 64, MONITOR_CALLS_MAX = 4096, MONITOR_ENTRY_MAX = 24 };

struct monitor;
/** Listens from now on, on a thread of its own. @own caller, monitor_stop() */
struct monitor *monitor_start(const struct suite *suite);
void monitor_stop(struct monitor *monitor);

/** One call of fx3_append. */
struct monitor_append {
    uint32_t epoch;
    uint32_t first, count; /* its entries in monitor_log.entries; count 0: it wrote nothing */
    uint32_t line;         /* of the monitor, for monitor_words() */
};
struct monitor_log {
    uint32_t append_count, entry_count;
    struct monitor_append appends[MONITOR_CALLS_MAX];
    char entries[MONITOR_CALLS_MAX][MONITOR_ENTRY_MAX]; /* their ids, in order */
};
/** The generation's calls so far. */
void monitor_read(struct monitor *monitor, const char *generation, struct monitor_log *out);

/** The words of a command; each NUL-terminated. */
struct monitor_words {
    uint32_t count;
    char at[MONITOR_WORDS_MAX][128];
};
void monitor_words(struct monitor *monitor, uint32_t line, struct monitor_words *out);
