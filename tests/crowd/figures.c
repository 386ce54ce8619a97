#include "tests/crowd/figures.h"
#include <jansson.h>
#include <stdlib.h>

static void sample(double **samples, uint32_t *count, uint32_t *cap, double ms) {
    if (*count == *cap) {
        *cap = 2 * *cap + 1024;
        *samples = realloc(*samples, *cap * sizeof **samples);
        FX_ASSERT(*samples);
    }
    (*samples)[(*count)++] = ms;
}

static void times_take(struct figures *figures, const struct client *got) {
    if (!got->chunk_count) return;
    sample(&figures->first_ms, &figures->first_count, &figures->first_cap,
           (double)(got->came_us[0] - got->asked_us) / 1e3);
    for (uint32_t i = 1; i < got->chunk_count; i++)
        sample(&figures->gaps_ms, &figures->gap_count, &figures->gap_cap,
               (double)(got->came_us[i] - got->came_us[i - 1]) / 1e3);
}

static bool is_good(const struct client *got, const struct client *recorded, bool *whole,
                    char why[CLIENT_WHY_MAX]) {
    *whole = got->done && !*got->why;
    if (*whole) return !recorded || client_same(got, recorded, why);
    memcpy(why, got->why, CLIENT_WHY_MAX);
    return false;
}

bool figures_take(struct figures *figures, const struct client *got, const struct client *recorded,
                  char why[CLIENT_WHY_MAX]) {
    bool whole, good = is_good(got, recorded, &whole, why), stream = got->opts.request->stream;
    figures->streams += good && stream;
    figures->requests += good && !stream;
    figures->failed += !whole;
    figures->differing += whole && !good;
    figures->came_back += got->came_back;
    figures->asked_again += got->asked_again;
    figures->tokens += stream ? got->choices[0].tokens : got->usage;
    times_take(figures, got);
    if (!good && !*figures->failure)
        (void)snprintf(figures->failure, sizeof figures->failure, "%s %u (%s): %s",
                       stream ? "stream" : "request", got->opts.request->number, got->name, why);
    return good;
}

static int by_size(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Of sorted ones, to a microsecond. */
static double share_of(const double *samples, uint32_t count, double share) {
    return count ? (double)(long)(1e3 * samples[(uint32_t)(share * (count - 1) + 0.5)] + 0.5) / 1e3
                 : 0;
}

void figures_print(struct figures *figures, double seconds) {
    const double *gaps = figures->gaps_ms, *first = figures->first_ms;
    uint32_t gap_count = figures->gap_count, first_count = figures->first_count;
    if (gaps) qsort(figures->gaps_ms, gap_count, sizeof *gaps, by_size);
    if (first) qsort(figures->first_ms, first_count, sizeof *first, by_size);
    json_t *line = json_pack(
        "{s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:s}", "streams",
        (int)figures->streams, "requests", (int)figures->requests, "failed", (int)figures->failed,
        "differing", (int)figures->differing, "came_back", (int)figures->came_back, "asked_again",
        (int)figures->asked_again, "tokens", (json_int_t)figures->tokens, "seconds", seconds,
        "tokens_per_s", (double)figures->tokens / seconds, "first_p50_ms",
        share_of(first, first_count, 0.5), "first_max_ms", share_of(first, first_count, 1),
        "gap_p50_ms", share_of(gaps, gap_count, 0.5), "gap_p99_ms", share_of(gaps, gap_count, 0.99),
        "silence_max_ms", share_of(gaps, gap_count, 1), "failure", figures->failure);
    FX_ASSERT(line && json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6)) == 0);
    json_decref(line);
    (void)putchar('\n');
    (void)fflush(stdout);
}

void figures_free(struct figures *figures) {
    free(figures->gaps_ms);
    free(figures->first_ms);
}
