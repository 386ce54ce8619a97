#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** Progress of a job in stages: on a terminal one line that is drawn over, with a bar, the rate
 *  and the time left; else a line where a stage begins and at each tenth. */
struct cli_progress {
    FILE *out;
    bool is_terminal;
    char stage[32];
    uint64_t stage_start_us, drawn_us;
    uint64_t stage_start_bytes; /* done when the stage was first seen */
    unsigned tenth;
};

struct cli_progress_at {
    const char *stage;                /* borrowed for the call */
    uint64_t done_bytes, total_bytes; /* total 0: unknown, only the stage is shown */
    uint64_t now_us;
};

void cli_progress_init(struct cli_progress *progress, FILE *out, bool is_terminal);
void cli_progress_show(struct cli_progress *progress, const struct cli_progress_at *at);
/** Ends the line, where one is open. */
void cli_progress_end(struct cli_progress *progress);
