#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "common/base/heap.h"
#include "services/cli/model_list.h"
#include "services/cli/terminal.h"

enum { ARENA_BYTES = 4 * 1024 * 1024, AWAIT_US = 500000 };

static void show(const Fractal__V1__Model *model) {
    char bytes[16], date[32] = "-";
    time_t created = (time_t)model->created_s;
    struct tm at;
    if (localtime_r(&created, &at)) (void)strftime(date, sizeof date, "%Y-%m-%d %H:%M", &at);
    (void)printf("%-32s %-5s %9s %8u  %-16s  %s\n", model->name, model->dtype,
                 cli_bytes((double)model->bytes, bytes), model->context_max, date, model->version);
}

static void show_all(const Fractal__V1__ListModelsReply *reply) {
    if (reply->n_models)
        (void)printf("%-32s %-5s %9s %8s  %-16s  %s\n", "NAME", "DTYPE", "SIZE", "CONTEXT",
                     "IMPORTED", "VERSION");
    else
        (void)fprintf(stderr, "no model yet; ./fractal import adds one\n");
    for (size_t i = 0; i < reply->n_models; i++)
        show(reply->models[i]);
}

struct models_args {
    const char *await;
};
static const struct cli_option options[] = {
    {"await", CLI_TEXT, offsetof(struct models_args, await), 0, 0, "NAME", NULL,
     "prints nothing, and ends once the store has this model"},
};

/* For those that start beside the slicer: its absence is told once, and waited for. */
static int await_model(const struct cli_settings *settings, const char *name) {
    bool there = false, told = false;
    for (;;) {
        fx_error err = {0};
        bool ok = cli_model_there(settings, name, &there, &err);
        if (there) return CLI_OK;
        if (!told)
            (void)fprintf(stderr, "waiting for the model '%s'%s%s\n", name, ok ? "" : ": ",
                          ok ? "" : err.text);
        told = true;
        (void)usleep(AWAIT_US);
    }
}

static int run(const struct cli_settings *settings, int argc, char **argv) {
    struct models_args args = {0};
    fx_error err = {0};
    int left = cli_options(options, FX_COUNT(options), argc, argv, &args, &err);
    if (left > 0) fx_error_set(&err, FX_INVALID_ARGUMENT, "what is '%s'?", argv[0]);
    if (left) return cli_misused(&cli_models, &err);
    if (args.await) return await_model(settings, args.await);
    fx_auto(uint8_t) memory = fx_alloc(ARENA_BYTES, 1);
    fx_arena arena;
    fx_arena_init(&arena, memory, memory ? ARENA_BYTES : 0);
    Fractal__V1__ListModelsReply *reply = NULL;
    bool ok = cli_model_list(settings, &arena, &reply, &err);
    if (ok) show_all(reply);
    fx_arena_done(&arena);
    return ok ? CLI_OK : cli_failed(&err);
}

const struct cli_command cli_models = {
    .name = "models",
    .usage = "[--await NAME]",
    .summary = "What the model store holds",
    .options = options,
    .option_count = FX_COUNT(options),
    .run = run,
};
