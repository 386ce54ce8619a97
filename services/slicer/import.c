#include <string.h>
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/model/ingest.h"
#include "common/model/tokenizer.h"
#include "common/rpc/pb.h"
#include "services/slicer/app.h"
#include "services/slicer/message.h"

/* The import that runs, on its thread. */
struct run {
    struct slicer_job *job;
    const char *stage;
    uint64_t sent_ms, total_bytes;
};

static void fill(Fractal__V1__ImportProgress *message, const struct fx_ingest_progress *progress) {
    fractal__v1__import_progress__init(message);
    message->stage = fx_pb_text(progress->stage);
    message->done_bytes = progress->done_bytes;
    message->total_bytes = progress->total_bytes;
}

/* Each stage at once, else one message in SLICER_PROGRESS_MS; a client that reads slowly misses
 * some. False: the client is gone, or we shut down. */
static bool on_progress(void *user, const struct fx_ingest_progress *progress) {
    struct run *run = user;
    struct slicer_app *app = run->job->app;
    Fractal__V1__ImportProgress message;
    app->import_done_bytes = progress->done_bytes;
    app->import_total_bytes = run->total_bytes = progress->total_bytes;
    if (slicer_stops(app) || fx_call_cancelled(run->job->call)) return false;
    bool is_new = !run->stage || strcmp(run->stage, progress->stage) != 0;
    if (!is_new && fx_clock_ms() - run->sent_ms < SLICER_PROGRESS_MS) return true;
    fill(&message, progress);
    enum fx_send sent = fx_call_send(run->job->call, &message);
    if (sent != FX_SEND_OK) return sent == FX_SEND_BUSY;
    run->stage = progress->stage;
    run->sent_ms = fx_clock_ms();
    return true;
}

/* A tokenizer that gateways could not use is refused here, not at the first request. */
static bool on_check(void *user, const struct fx_ingest_found *found, fx_error *err) {
    const struct fx_tokenizer_files files = {found->tokenizer_json, found->tokenizer_config_json};
    fx_auto(fx_tokenizer) tokenizer = NULL;
    (void)user;
    if (!found->tokenizer_json.len) return true;
    if (!fx_tokenizer_new(&files, &tokenizer, err)) return false;
    return fx_tokenizer_vocabulary(tokenizer) <= found->config->vocabulary ||
           fx_fail(err, FX_INVALID_ARGUMENT,
                   "tokenizer.json has %u ids, the config's vocab_size is %u",
                   fx_tokenizer_vocabulary(tokenizer), found->config->vocabulary);
}

static void fail(struct run *run, const char *name, const fx_error *err) {
    struct slicer_app *app = run->job->app;
    app->imports_failed++;
    fx_log(FX_LOG_WARN, FX_EVENT("import_failed"), FX_KS("model", name), FX_KS("error", err->text));
    if (slicer_stops(app) && err->code == FX_CANCELLED)
        fx_call_fail(run->job->call, FX_UNAVAILABLE, "the slicer shuts down");
    else
        fx_call_fail_error(run->job->call, err);
}

/* The last message; by then the version is published, whether the client hears of it or not. */
static void succeed(struct run *run, const struct fx_model_info *info) {
    struct slicer_app *app = run->job->app;
    struct slicer_model model;
    Fractal__V1__ImportProgress message;
    const struct fx_ingest_progress progress = {"publish", run->total_bytes, run->total_bytes};
    app->imports_done++;
    fx_log(FX_LOG_INFO, FX_EVENT("imported"), FX_KS("model", info->name),
           FX_KS("version", info->version), FX_KS("dtype", fx_model_dtype_name(info->dtype)),
           FX_KI("bytes", info->bytes));
    slicer_model_fill(&model, info);
    fill(&message, &progress);
    message.done = true;
    message.model = &model.message;
    if (fx_call_send_wait(run->job->call, &message, SLICER_LAST_SEND_MS) == FX_SEND_OK)
        fx_call_finish(run->job->call);
    else
        fx_call_fail(run->job->call, FX_CANCELLED, "the client is gone; the import is complete");
}

static void run_import(void *user) {
    struct run run = {.job = user};
    struct slicer_app *app = run.job->app;
    const Fractal__V1__ImportModelRequest *request = run.job->request;
    const struct fx_ingest_opts opts = {.folder = request->folder,
                                        .store_dir = app->model_dir,
                                        .name = request->name,
                                        .dtype = fx_model_dtype_of(request->dtype),
                                        .progress = on_progress,
                                        .check = on_check,
                                        .ctx = &run};
    struct fx_model_info info;
    fx_error err = {0}, ignored = {0};
    fx_log(FX_LOG_INFO, FX_EVENT("importing"), FX_KS("model", request->name),
           FX_KS("folder", request->folder));
    bool ok = fx_ingest(&opts, &info, &err);
    app->import_done_bytes = app->import_total_bytes = 0;
    if (ok && !slicer_count_models(app, &ignored))
        fx_log(FX_LOG_WARN, FX_EVENT("list_failed"), FX_KS("error", ignored.text));
    app->importing = false; /* before the call ends: its client may begin the next at once */
    if (ok)
        succeed(&run, &info);
    else
        fail(&run, opts.name, &err);
}

static FX_MUST bool check_request(const Fractal__V1__ImportModelRequest *request, fx_error *err) {
    if (!fx_model_name_check(request->name, err)) return false;
    if (!fx_model_dtype_of(request->dtype))
        return fx_fail(err, FX_INVALID_ARGUMENT, "dtype is none of f32, f16, int4");
    return request->folder[0] == '/' ||
           fx_fail(err, FX_INVALID_ARGUMENT, "folder is no absolute path on the slicer's disk");
}

void slicer_import(fx_call *call, const void *request, void *context) {
    struct slicer_app *app = context;
    fx_error err = {0};
    bool is_free = false;
    if (!fx_token_check(call, app->token, &err) || !check_request(request, &err)) {
        fx_call_fail_error(call, &err);
        return;
    }
    if (!atomic_compare_exchange_strong(&app->importing, &is_free, true)) {
        fx_call_fail(call, FX_RESOURCE_EXHAUSTED, "another import runs: try again when it is done");
        return;
    }
    if (!slicer_post(app->imports, call, request, app, run_import)) app->importing = false;
}
