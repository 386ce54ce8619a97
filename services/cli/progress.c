#include "services/cli/progress.h"
#include <string.h>
#include "services/cli/terminal.h"

enum { BAR_CELLS = 24, REDRAW_US = 100000, RATE_AFTER_US = 200000 };

void cli_progress_init(struct cli_progress *progress, FILE *out, bool is_terminal) {
    *progress = (struct cli_progress){.out = out, .is_terminal = is_terminal};
}

/* Bytes a second over this stage, 0 while it is too early to tell. */
static double rate(const struct cli_progress *progress, const struct cli_progress_at *at) {
    uint64_t us = at->now_us - progress->stage_start_us;
    if (us < RATE_AFTER_US || at->done_bytes <= progress->stage_start_bytes) return 0;
    return (double)(at->done_bytes - progress->stage_start_bytes) * 1e6 / (double)us;
}

static double fraction(const struct cli_progress_at *at) {
    if (!at->total_bytes || at->done_bytes >= at->total_bytes) return 1;
    return (double)at->done_bytes / (double)at->total_bytes;
}

static void put_rate(const struct cli_progress *progress, const struct cli_progress_at *at) {
    char text[16];
    double bytes_per_s = rate(progress, at);
    if (bytes_per_s <= 0) return;
    (void)fprintf(progress->out, "  %s/s", cli_bytes(bytes_per_s, text));
    if (at->done_bytes >= at->total_bytes) return;
    double left_s = (double)(at->total_bytes - at->done_bytes) / bytes_per_s;
    if (left_s > 359999) left_s = 359999;
    unsigned seconds = (unsigned)(left_s + 0.5);
    (void)fprintf(progress->out, "  %u:%02u left", seconds / 60, seconds % 60);
}

static void draw_bar(const struct cli_progress *progress, const struct cli_progress_at *at) {
    char bar[BAR_CELLS + 1];
    (void)fprintf(progress->out, "\r\033[K%-9s", progress->stage);
    if (!at->total_bytes) return;
    size_t full = (size_t)(fraction(at) * BAR_CELLS);
    memset(bar, '.', BAR_CELLS);
    memset(bar, '#', full);
    bar[BAR_CELLS] = '\0';
    (void)fprintf(progress->out, " [%s] %3.0f%%", bar, 100 * fraction(at));
    put_rate(progress, at);
}

static void put_line(const struct cli_progress *progress, const struct cli_progress_at *at) {
    char done[16], total[16];
    (void)fputs(progress->stage, progress->out);
    if (at->total_bytes) {
        (void)fprintf(progress->out, ": %3.0f%%  %s of %s", 100 * fraction(at),
                      cli_bytes((double)at->done_bytes, done),
                      cli_bytes((double)at->total_bytes, total));
        put_rate(progress, at);
    }
    (void)fputc('\n', progress->out);
}

static bool begins(struct cli_progress *progress, const struct cli_progress_at *at) {
    char stage[sizeof progress->stage];
    (void)snprintf(stage, sizeof stage, "%.*s", (int)sizeof stage - 1, at->stage);
    if (strcmp(stage, progress->stage) == 0) return false;
    if (*progress->stage && progress->is_terminal) (void)fputc('\n', progress->out);
    memcpy(progress->stage, stage, sizeof stage);
    progress->stage_start_us = at->now_us;
    progress->stage_start_bytes = at->done_bytes;
    progress->tenth = 0;
    return true;
}

void cli_progress_show(struct cli_progress *progress, const struct cli_progress_at *at) {
    bool fresh = begins(progress, at), whole = fraction(at) >= 1;
    unsigned tenth = (unsigned)(fraction(at) * 10);
    if (progress->is_terminal) {
        if (!fresh && !whole && at->now_us - progress->drawn_us < REDRAW_US) return;
        progress->drawn_us = at->now_us;
        draw_bar(progress, at);
    } else if (fresh || tenth != progress->tenth) {
        put_line(progress, at);
    }
    (void)fflush(progress->out);
    progress->tenth = tenth;
}

void cli_progress_end(struct cli_progress *progress) {
    if (progress->is_terminal && *progress->stage) (void)fputc('\n', progress->out);
    progress->stage[0] = '\0';
    (void)fflush(progress->out);
}
