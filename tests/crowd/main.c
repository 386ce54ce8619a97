/* Clients of a suite that runs elsewhere: what it answers undisturbed is recorded, and must come
 * again whatever happens to it. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "tests/crowd/run.h"

enum { TOKENS_MAX = 100000, RATE_MAX = 1000, SECONDS_MAX = 86400 };

static const char usage[] =
    "usage: fractal-crowd record ADDRESS:PORT FILE [OPTIONS]\n"
    "       fractal-crowd compare ADDRESS:PORT FILE [OPTIONS]\n"
    "       fractal-crowd wait\n"
    "\n"
    "record asks an undisturbed suite and keeps what it answered in FILE. compare asks again, "
    "until\n"
    "stdin ends, and counts answers that fail or differ; it says `begun` once every stream has\n"
    "had a token, then `tokens N`. Both end with a line of JSON, and with 1 when an answer failed "
    "or\n"
    "differs. wait does nothing until SIGTERM: a pod to run the others in. The key is FX_API_KEY.\n"
    "ADDRESS is numeric; HTTP, no TLS.\n"
    "\n"
    "  --streams N         streams at a time (8)\n"
    "  --answer-seconds N  one that takes longer has failed (60)\n"
    "  --resume            clients come back to a broken stream and ask again when told to\n"
    "of record:\n"
    "  --model NAME        (" REQUEST_MODEL ")\n"
    "  --count N           streams (as many as --streams)\n"
    "  --tokens N          of a stream (256)\n"
    "  --requests N        requests, not streamed (0)\n"
    "  --request-tokens N  of a request (8)\n"
    "of compare:\n"
    "  --rate N            requests a second, beside the streams (0)\n"
    "  --once              each recorded stream once, instead of until stdin ends\n";

struct crowd_opts {
    struct run_opts run;
    const char *model;
    uint32_t count, tokens, requests, request_tokens;
};

static bool number(const char *text, uint32_t max, uint32_t *out) {
    char *end = NULL;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value > max) return false;
    *out = (uint32_t)value;
    return true;
}

static const struct option options[] = {
    {"streams",        required_argument, NULL, 's'},
    {"answer-seconds", required_argument, NULL, 'a'},
    {"resume",         no_argument,       NULL, 'r'},
    {"model",          required_argument, NULL, 'm'},
    {"count",          required_argument, NULL, 'c'},
    {"tokens",         required_argument, NULL, 't'},
    {"requests",       required_argument, NULL, 'q'},
    {"request-tokens", required_argument, NULL, 'k'},
    {"rate",           required_argument, NULL, 'R'},
    {"once",           no_argument,       NULL, 'o'},
    {NULL,             0,                 NULL, 0  },
};

static bool option_take(int option, struct crowd_opts *out) {
    uint32_t seconds = 0;
    switch (option) {
    case 's': return number(optarg, RUN_STREAMS_MAX, &out->run.streams);
    case 'a':
        if (!number(optarg, SECONDS_MAX, &seconds)) return false;
        out->run.answer_ms = seconds * 1000;
        return true;
    case 'r': return out->run.resume = true;
    case 'm': out->model = optarg; return true;
    case 'c': return number(optarg, TEXTS_MAX, &out->count);
    case 't': return number(optarg, TOKENS_MAX, &out->tokens);
    case 'q': return number(optarg, TEXTS_MAX, &out->requests);
    case 'k': return number(optarg, TOKENS_MAX, &out->request_tokens);
    case 'R': return number(optarg, RATE_MAX, &out->run.rate);
    case 'o': return out->run.once = true;
    default: return false;
    }
}

static FX_MUST bool options_read(int count, char **args, struct crowd_opts *out, fx_error *err) {
    int option;
    *out = (struct crowd_opts){
        .run = {.streams = 8, .answer_ms = 60000},
        .model = REQUEST_MODEL,
        .tokens = 256,
        .request_tokens = 8
    };
    while ((option = getopt_long(count, args, "", options, NULL)) != -1)
        if (!option_take(option, out))
            return fx_fail(err, FX_INVALID_ARGUMENT, "%s: see --help", args[optind - 1]);
    if (!out->count) out->count = out->run.streams;
    if (out->count + out->requests <= TEXTS_MAX) return true;
    return fx_fail(err, FX_INVALID_ARGUMENT, "more than %d answers", TEXTS_MAX);
}

/* "10.1.2.3:80" or "[fd00::1]:80", cut up in place. */
static FX_MUST bool address_read(char *text, struct run_opts *out, fx_error *err) {
    char *colon = strrchr(text, ':');
    uint32_t port = 0;
    if (!colon || !number(colon + 1, UINT16_MAX, &port) || !port)
        return fx_fail(err, FX_INVALID_ARGUMENT, "'%s': want ADDRESS:PORT", text);
    *colon = 0;
    if (*text == '[' && colon[-1] == ']') {
        colon[-1] = 0;
        text++;
    }
    out->host = text;
    out->port = (uint16_t)port;
    return true;
}

static void requests_make(const struct crowd_opts *opts, struct texts *texts) {
    texts->count = opts->count + opts->requests;
    for (uint32_t i = 0; i < texts->count; i++) {
        bool stream = i < opts->count;
        request_make_sized(
            &(struct request_size){.model = opts->model,
                                   .number = i,
                                   .tokens = stream ? opts->tokens : opts->request_tokens,
                                   .stream = stream},
            &texts->requests[i]);
    }
}

static FX_MUST bool crowd(bool record, const char *path, const struct crowd_opts *opts,
                          fx_error *err) {
    static struct texts texts;
    struct figures figures = {0};
    if (!record && !texts_read(path, &texts, err)) return false;
    if (record) requests_make(opts, &texts);
    uint64_t begin_us = fx_clock_us();
    (record ? run_record(&opts->run, &texts, &figures) : run_compare(&opts->run, &texts, &figures));
    figures_print(&figures, (double)(fx_clock_us() - begin_us) / 1e6);
    bool good = !figures.failed && !figures.differing && figures.streams + figures.requests;
    if (!good)
        (void)fx_fail(err, FX_DATA_LOSS, "%s", *figures.failure ? figures.failure : "no answer");
    if (good && record) good = texts_write(path, &texts, err);
    figures_free(&figures);
    texts_free(&texts);
    return good;
}

static int wait_for_term(void) {
    sigset_t set;
    int got;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return sigwait(&set, &got);
}

static FX_MUST bool command(int count, char **args, fx_error *err) {
    struct crowd_opts opts;
    if (!options_read(count, args, &opts, err)) return false;
    char **words = args + optind;
    bool record = count - optind == 3 && strcmp(words[0], "record") == 0;
    if (!record && (count - optind != 3 || strcmp(words[0], "compare") != 0))
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "want record or compare, an address and a file; see --help");
    if (!address_read(words[1], &opts.run, err)) return false;
    opts.run.key = getenv("FX_API_KEY");
    if (!opts.run.key) return fx_fail(err, FX_INVALID_ARGUMENT, "FX_API_KEY is not set");
    return crowd(record, words[2], &opts, err);
}

int main(int count, char **args) {
    fx_error err = {0};
    if (count == 2 && strcmp(args[1], "wait") == 0) return wait_for_term();
    if (count == 2 && strcmp(args[1], "--help") == 0) {
        (void)fputs(usage, stdout);
        return 0;
    }
    if (command(count, args, &err)) return 0;
    (void)fprintf(stderr, "fractal-crowd: %s\n", err.text);
    return 1;
}
