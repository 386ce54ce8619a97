#include "tests/crowd/run.h"
#include <poll.h>
#include <stdio.h>
#include <unistd.h>
#include "common/base/clock.h"

enum { TURN_MS = 5, TELL_MS = 250, SHOWN_MAX = 20 };

/* One client at a time. */
struct place {
    struct client client;
    char run[48];
    uint32_t index; /* of the recorded answer */
    bool taken;
};

static struct {
    const struct run_opts *opts;
    const struct texts *texts;
    struct figures *figures;
    struct place streams[RUN_STREAMS_MAX], requests[RUN_REQUESTS_MAX];
    uint32_t asked, next_stream, next_request; /* of all; of the recorded ones */
    uint64_t begin_ms, told_ms, told_tokens;
    uint32_t sent; /* requests */
    bool begun, over;
} run;

static void place_ask(struct place *place, uint32_t index, const struct request *request) {
    const struct run_opts *opts = run.opts;
    place->index = index;
    place->taken = true;
    (void)snprintf(place->run, sizeof place->run, "crowd-%llu-%u", (unsigned long long)fx_wall_ms(),
                   run.asked++);
    client_start(&place->client, &(struct client_opts){.request = request,
                                                       .api_key = opts->key,
                                                       .run = place->run,
                                                       .host = opts->host,
                                                       .ports = {opts->port},
                                                       .port_count = 1,
                                                       .answer_ms = opts->answer_ms,
                                                       .once = !opts->resume});
}

static void place_end(struct place *place) {
    char why[CLIENT_WHY_MAX];
    client_join(&place->client);
    if (!figures_take(run.figures, &place->client, &run.texts->answers[place->index], why) &&
        run.figures->failed + run.figures->differing <= SHOWN_MAX)
        (void)fprintf(stderr, "after %.1f s: %s\n", (double)(fx_clock_ms() - run.begin_ms) / 1e3,
                      why);
    client_free(&place->client);
    place->taken = false;
}

/* The next recorded answer of a kind. False: each was asked for once, and once is enough. */
static bool next_of(bool stream, uint32_t *next, uint32_t *index) {
    for (uint32_t tries = 0; tries < run.texts->count; tries++) {
        if (*next >= run.texts->count && run.opts->once) return false;
        *index = (*next)++ % run.texts->count;
        if (run.texts->requests[*index].stream == stream) return true;
    }
    return false;
}

static bool is_ended(const struct place *place) {
    return place->taken && place->client.phase == CLIENT_ENDED;
}

static bool streams_turn(void) {
    uint32_t index, open = 0;
    for (uint32_t i = 0; i < run.opts->streams; i++) {
        struct place *place = &run.streams[i];
        if (is_ended(place)) place_end(place);
        if (!place->taken && !run.over && next_of(true, &run.next_stream, &index))
            place_ask(place, index, &run.texts->requests[index]);
        open += place->taken;
    }
    return open > 0;
}

/* As many as there should have been by now; where all places are taken they are late. */
static bool requests_turn(void) {
    uint64_t due = (fx_clock_ms() - run.begin_ms) * run.opts->rate / 1000;
    uint32_t index, open = 0;
    for (uint32_t i = 0; i < RUN_REQUESTS_MAX; i++) {
        struct place *place = &run.requests[i];
        if (is_ended(place)) place_end(place);
        if (!place->taken && !run.over && run.sent < due &&
            next_of(false, &run.next_request, &index)) {
            place_ask(place, index, &run.texts->requests[index]);
            run.sent++;
        }
        open += place->taken;
    }
    return open > 0;
}

static uint64_t tokens_now(bool *all_begun) {
    uint64_t tokens = run.figures->tokens;
    *all_begun = true;
    for (uint32_t i = 0; i < run.opts->streams; i++) {
        const struct place *place = &run.streams[i];
        if (!place->taken) continue;
        tokens += place->client.chunk_count;
        *all_begun = *all_begun && place->client.chunk_count;
    }
    return tokens;
}

static void tell(void) {
    bool all_begun;
    uint64_t now_ms = fx_clock_ms(), tokens = tokens_now(&all_begun);
    if (all_begun && tokens && !run.begun) {
        run.begun = true;
        (void)printf("begun\n");
    } else if (now_ms < run.told_ms + TELL_MS || tokens <= run.told_tokens) {
        return;
    }
    run.told_ms = now_ms;
    run.told_tokens = tokens;
    (void)printf("tokens %llu\n", (unsigned long long)tokens);
    (void)fflush(stdout);
}

/* Waits a moment, or for the end of stdin. */
static void turn_wait(void) {
    struct pollfd in = {STDIN_FILENO, POLLIN, 0};
    char bytes[256];
    if (run.opts->once || run.over)
        (void)usleep(TURN_MS * 1000);
    else if (poll(&in, 1, TURN_MS) > 0)
        run.over = read(STDIN_FILENO, bytes, sizeof bytes) <= 0;
}

void run_compare(const struct run_opts *opts, const struct texts *texts, struct figures *out) {
    run.opts = opts;
    run.texts = texts;
    run.figures = out;
    run.begin_ms = fx_clock_ms();
    for (bool busy = true; busy || !(opts->once || run.over);) {
        busy = streams_turn();
        if (opts->rate) busy |= requests_turn();
        tell();
        turn_wait();
    }
}

void run_record(const struct run_opts *opts, struct texts *texts, struct figures *out) {
    static char names[TEXTS_MAX][48];
    char why[CLIENT_WHY_MAX];
    for (uint32_t first = 0; first < texts->count; first += opts->streams) {
        uint32_t end = first + opts->streams < texts->count ? first + opts->streams : texts->count;
        for (uint32_t i = first; i < end; i++) {
            (void)snprintf(names[i], sizeof names[i], "record-%llu",
                           (unsigned long long)fx_wall_ms());
            client_start(&texts->answers[i], &(struct client_opts){.request = &texts->requests[i],
                                                                   .api_key = opts->key,
                                                                   .run = names[i],
                                                                   .host = opts->host,
                                                                   .ports = {opts->port},
                                                                   .port_count = 1,
                                                                   .answer_ms = opts->answer_ms,
                                                                   .once = !opts->resume});
        }
        for (uint32_t i = first; i < end; i++) {
            client_join(&texts->answers[i]);
            (void)figures_take(out, &texts->answers[i], NULL, why);
        }
    }
}
