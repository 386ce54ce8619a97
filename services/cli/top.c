#include <jansson.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "services/cli/cli.h"
#include "services/cli/http.h"
#include "services/cli/interrupt.h"
#include "services/cli/sse.h"
#include "services/cli/terminal.h"
#include "services/cli/top_table.h"

enum {
    TEXT_BYTES_MAX = 256 * 1024,
    WIDTH_DEFAULT = 80,
    HEIGHT_DEFAULT = 24,
    RETRY_MS = 1000,
    STALE_MS = 3000, /* without a snapshot */
};

/* The other screen without a cursor, and back. */
#define SCREEN_OPEN "\x1b[?1049h\x1b[?25l"
#define SCREEN_CLOSE "\x1b[?25h\x1b[?1049l"
#define SCREEN_HOME "\x1b[H"
#define LINE_END "\x1b[K\n"
#define SCREEN_REST "\x1b[J"

FX_DEFINE_AUTO(json_t, json_decref)

struct top_args {
    bool once, json;
};
static const struct cli_option options[] = {
    {"once", CLI_FLAG, offsetof(struct top_args, once), 0, 0, "", NULL,
     "one table, then the end; so it is where no terminal is"},
    {"json", CLI_FLAG, offsetof(struct top_args, json), 0, 0, "", NULL,
     "the snapshots as they come, one a line"                },
};

struct top {
    struct top_args args;
    bool draws;  /* on a terminal, over and over */
    bool enough; /* --once has its snapshot */
    cli_sse *sse;
    json_t *last; /* NULL: none yet */
    uint64_t last_ms;
    char *text; /* [TEXT_BYTES_MAX] */
};

/* -- the terminal -- */

static struct winsize window(void) {
    struct winsize size = {0};
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    if (!size.ws_col) size.ws_col = WIDTH_DEFAULT;
    if (!size.ws_row) size.ws_row = HEIGHT_DEFAULT;
    return size;
}

static void table(struct top *top, uint32_t width) {
    fx_buf out = {(uint8_t *)top->text, 0, TEXT_BYTES_MAX - 1};
    cli_top_table(top->last, &(struct cli_top_view){width}, &out);
    top->text[fx_buf_fits(&out) ? out.len : TEXT_BYTES_MAX - 1] = '\0';
}

/* The table's first lines that fit, cut at the width, and what there is to say below. */
static void draw(struct top *top, const char *note) {
    struct winsize size = window();
    int rows = size.ws_row - 2, width = size.ws_col;
    (void)fputs(SCREEN_HOME, stdout);
    if (top->last) {
        table(top, (uint32_t)width);
        for (const char *line = top->text; *line && rows > 0; rows--) {
            int len = (int)strcspn(line, "\n");
            (void)printf("%.*s" LINE_END, len < width ? len : width, line);
            line += line[len] ? len + 1 : len;
        }
    }
    (void)printf("%.*s" LINE_END SCREEN_REST, width, note);
    (void)fflush(stdout);
}

static void show(struct top *top, fx_span data) {
    if (top->args.json) {
        cli_put_text(stdout, data);
        cli_put_text(stdout, fx_span_str("\n"));
    } else if (top->draws) {
        draw(top, "Ctrl-C ends");
    } else {
        table(top, 0);
        cli_put_text(stdout, fx_span_str(top->text));
    }
}

/* -- the stream -- */

static bool on_data(void *user, fx_span data, fx_error *err) {
    struct top *top = user;
    fx_auto(json_t) snapshot = json_loadb((const char *)data.at, data.len, 0, NULL);
    if (!json_is_array(json_object_get(snapshot, "models")))
        return fx_fail(err, FX_INTERNAL, "the stream has a bad event");
    json_decref(top->last);
    top->last = fx_take(snapshot);
    top->last_ms = fx_clock_ms();
    show(top, data);
    top->enough = top->args.once;
    return !top->enough || fx_fail(err, FX_CANCELLED, "enough");
}

static bool on_stream(void *user, fx_span bytes, fx_error *err) {
    struct top *top = user;
    if (!cli_sse_feed(top->sse, bytes, err)) return false;
    if (top->draws && fx_clock_ms() - top->last_ms > STALE_MS)
        draw(top, "the gateway has no new figures: is Redis there?");
    return true;
}

/* Until the stream ends, which it never does well. */
static void follow(struct top *top, const char *base, const char *key, fx_error *err) {
    char url[CLI_URL_MAX + 32];
    struct cli_http_reply reply = {0};
    fx_auto(cli_sse) sse = NULL;
    if (!cli_sse_new(&(struct cli_sse_opts){on_data, top}, &sse, err)) return;
    top->sse = sse;
    (void)snprintf(url, sizeof url, "%s/v1/telemetry", base);
    struct cli_http_request request = {
        .url = url, .api_key = key, .on_stream = on_stream, .user = top};
    if (!cli_http(&request, &reply, err)) return;
    if (reply.status != 200)
        (void)cli_http_refused(&reply, err);
    else
        fx_error_set(err, FX_UNAVAILABLE, "the gateway has ended the stream");
    if (reply.status >= 500 || reply.status == 429) err->code = FX_UNAVAILABLE;
    free(reply.body);
}

static bool comes_back(const struct top *top, const fx_error *err) {
    if (!top->last || cli_interrupted()) return false; /* it never worked, or is not wanted */
    return err->code == FX_UNAVAILABLE || err->code == FX_DATA_LOSS ||
           err->code == FX_DEADLINE_EXCEEDED;
}

static void wait_and_say(struct top *top, const fx_error *err) {
    char note[sizeof err->text + 32];
    (void)snprintf(note, sizeof note, "coming back: %s", err->text);
    if (top->draws)
        draw(top, note);
    else
        (void)fprintf(stderr, "fractal: %s\n", note);
    (void)cli_interrupt_wait(RETRY_MS);
}

/* From gateway to gateway; false with why it ended. */
static FX_MUST bool watch(struct top *top, const struct cli_gateways *gateways, const char *key,
                          fx_error *err) {
    for (uint32_t tries = 0;; tries++) {
        follow(top, gateways->url[tries % gateways->count], key, err);
        if (top->enough) return true;
        bool another = !top->last && err->code == FX_UNAVAILABLE && tries + 1 < gateways->count;
        if (cli_interrupted()) return fx_fail(err, FX_CANCELLED, "cancelled");
        if (!another && !comes_back(top, err)) return false;
        if (!another) wait_and_say(top, err);
    }
}

static FX_MUST bool top_run(struct top *top, const struct cli_settings *settings, fx_error *err) {
    struct cli_gateways gateways;
    char key[CLI_SECRET_MAX];
    if (!cli_gateways_read(settings, &gateways, err) || !cli_api_key(settings, key, err))
        return false;
    cli_interrupt_watch();
    if (top->draws) (void)fputs(SCREEN_OPEN, stdout);
    bool ok = watch(top, &gateways, key, err);
    if (top->draws) (void)fputs(SCREEN_CLOSE, stdout);
    (void)fflush(stdout);
    return ok;
}

static int run(const struct cli_settings *settings, int argc, char **argv) {
    struct top top = {0};
    fx_error err = {0};
    int words = cli_options(options, FX_COUNT(options), argc, argv, &top.args, &err);
    if (words > 0) fx_error_set(&err, FX_INVALID_ARGUMENT, "what is '%s'?", argv[0]);
    if (words) return cli_misused(&cli_top, &err);
    bool terminal = isatty(STDOUT_FILENO);
    if (!terminal && !top.args.json) top.args.once = true;
    top.draws = terminal && !top.args.once && !top.args.json;
    top.text = fx_alloc(TEXT_BYTES_MAX, 1);
    if (!top.text) fx_error_set(&err, FX_RESOURCE_EXHAUSTED, "memory for a table");
    bool ok = top.text && top_run(&top, settings, &err);
    json_decref(top.last);
    free(top.text);
    if (ok) return CLI_OK;
    if (err.code == FX_CANCELLED) return CLI_CANCELLED;
    return cli_failed(&err);
}

const struct cli_command cli_top = {
    .name = "top",
    .usage = "[OPTIONS]",
    .summary = "Models and workers at work, once a second; Ctrl-C ends it",
    .options = options,
    .option_count = FX_COUNT(options),
    .run = run,
    .more = "TTFT, ITL, QUEUE: from the submission to the first token, between tokens, from the\n"
            "submission to a worker, each of the last minute, in ms. ROWS: mean rows of a step.",
};
