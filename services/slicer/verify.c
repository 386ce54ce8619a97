#include "common/base/log.h"
#include "common/model/store.h"
#include "services/slicer/app.h"

static bool stop(void *user) {
    const struct slicer_job *job = user;
    return slicer_stops(job->app) || fx_call_cancelled(job->call);
}

static void fail(const struct slicer_job *job, const char *name, const fx_error *err) {
    if (err->code == FX_DATA_LOSS) {
        job->app->verify_failed++;
        fx_log(FX_LOG_ERROR, FX_EVENT("model_damaged"), FX_KS("model", name),
               FX_KS("error", err->text));
    }
    fx_call_fail_error(job->call, err);
}

static void run(void *user) {
    struct slicer_job *job = user;
    const Fractal__V1__VerifyModelRequest *request = job->request;
    Fractal__V1__VerifyModelReply reply = FRACTAL__V1__VERIFY_MODEL_REPLY__INIT;
    struct fx_store_verified verified;
    fx_error err = {0};
    if (!fx_store_verify(job->app->model_dir, request->name, stop, job, &verified, &err)) {
        fail(job, request->name, &err);
        return;
    }
    job->app->verified++;
    reply.files = verified.files;
    reply.bytes = verified.bytes;
    fx_call_reply(job->call, &reply);
}

void slicer_verify(fx_call *call, const void *request, void *context) {
    struct slicer_app *app = context;
    (void)slicer_post(app->verifies, call, request, app, run);
}
