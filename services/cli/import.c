#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "services/cli/model_list.h"
#include "services/cli/progress.h"
#include "services/cli/rpc.h"
#include "services/cli/terminal.h"

enum { DEADLINE_MS = 24 * 3600 * 1000 };

struct import_args {
    const char *name, *dtype;
    bool if_missing;
};

static const struct cli_option options[] = {
    {"name",       CLI_TEXT,   offsetof(struct import_args, name),       0, 0, "N", NULL,
     "its name in the store: [a-zA-Z0-9._-]{1,64}, also org/name"},
    {"dtype",      CLI_ONE_OF, offsetof(struct import_args, dtype),      0, 0, "D", "f32|f16|int4",
     "f32, f16 or int4 (the default)"                            },
    {"if-missing", CLI_FLAG,   offsetof(struct import_args, if_missing), 0, 0, "",  NULL,
     "only if the store has no model of that name"               },
};

struct import {
    struct cli_progress progress;
    bool done;
    uint64_t bytes;
    char name[96], version[96], dtype[16];
};

static void keep(struct import *import, const Fractal__V1__Model *model) {
    import->done = true;
    if (!model) return;
    import->bytes = model->bytes;
    (void)snprintf(import->name, sizeof import->name, "%s", model->name);
    (void)snprintf(import->version, sizeof import->version, "%s", model->version);
    (void)snprintf(import->dtype, sizeof import->dtype, "%s", model->dtype);
}

static bool on_message(void *user, const void *message) {
    struct import *import = user;
    const Fractal__V1__ImportProgress *at = message;
    if (at->done)
        keep(import, at->model);
    else
        cli_progress_show(
            &import->progress,
            &(struct cli_progress_at){at->stage, at->done_bytes, at->total_bytes, fx_clock_us()});
    return true;
}

static FX_MUST bool import_model(const struct cli_settings *settings,
                                 const struct import_args *args, char *folder,
                                 struct import *import, fx_error *err) {
    Fractal__V1__ImportModelRequest message = FRACTAL__V1__IMPORT_MODEL_REQUEST__INIT;
    char dtype[16], name[128];
    (void)snprintf(dtype, sizeof dtype, "%s", args->dtype ? args->dtype : "int4");
    if (snprintf(name, sizeof name, "%s", args->name) >= (int)sizeof name)
        return fx_fail(err, FX_INVALID_ARGUMENT, "--name is too long");
    message.folder = folder;
    message.name = name;
    message.dtype = dtype;
    struct cli_rpc rpc = {
        .service = "slicer",
        .addr = settings->slicer_addr,
        .method = "/fractal.v1.SlicerService/ImportModel",
        .message = &message,
        .reply = &fractal__v1__import_progress__descriptor,
        .deadline_ms = DEADLINE_MS,
        .on_message = on_message,
        .user = import,
    };
    bool ok = cli_rpc_call(settings, &rpc, NULL, err);
    cli_progress_end(&import->progress);
    if (!ok) return false;
    return import->done || fx_fail(err, FX_DATA_LOSS, "the import's end did not come");
}

static bool is_here(const char *addr) {
    static const char *const here[] = {"127.", "localhost:", "[::1]:"};
    for (size_t i = 0; i < FX_COUNT(here); i++)
        if (strncmp(addr, here[i], strlen(here[i])) == 0) return true;
    return false;
}

/* The slicer runs in another folder; on another machine the path is that machine's. */
static char *folder_of(const struct cli_settings *settings, const char *path) {
    char *folder = realpath(path, NULL);
    if (folder || *path != '/' || is_here(settings->slicer_addr)) return folder;
    return fx_strdup(path);
}

static int import_run(const struct cli_settings *settings, const struct import_args *args,
                      const char *path) {
    struct import import = {0};
    fx_error err = {0};
    char bytes[16];
    bool there = false;
    fx_auto(char) folder = folder_of(settings, path);
    if (!folder) {
        fx_error_set_errno(&err, "%s", path);
        return cli_failed(&err);
    }
    if (args->if_missing && !cli_model_there(settings, args->name, &there, &err))
        return cli_failed(&err);
    if (there) return CLI_OK;
    cli_progress_init(&import.progress, stderr, isatty(STDERR_FILENO));
    if (!import_model(settings, args, folder, &import, &err)) return cli_failed(&err);
    (void)printf("imported %s: %s, %s, version %s\n", import.name, import.dtype,
                 cli_bytes((double)import.bytes, bytes), import.version);
    return CLI_OK;
}

static int run(const struct cli_settings *settings, int argc, char **argv) {
    struct import_args args = {0};
    fx_error err = {0};
    int left = cli_options(options, FX_COUNT(options), argc, argv, &args, &err);
    if (left >= 0 && left != 1)
        fx_error_set(&err, FX_INVALID_ARGUMENT, "want one folder, not %d", left);
    else if (left == 1 && !args.name)
        fx_error_set(&err, FX_INVALID_ARGUMENT, "--name is missing");
    if (err.code) return cli_misused(&cli_import, &err);
    return import_run(settings, &args, argv[0]);
}

const struct cli_command cli_import = {
    .name = "import",
    .usage = "DIR --name N [--dtype f32|f16|int4] [--if-missing]",
    .summary = "Adds a Hugging Face folder on the slicer's disk to the store",
    .options = options,
    .option_count = FX_COUNT(options),
    .run = run,
};
