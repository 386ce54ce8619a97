#include "common/rpc/client_internal.h"

/* The calling thread turns the call until its last tag is back. */
static FX_MUST bool run(fx_client *client, const struct fx_client_request *request, void *out,
                        fx_error *err) {
    fx_client_call *call;
    struct fx_client_result result;
    if (!fx_client__start(client, request, true, &call, err)) return false;
    while (!call->waited_done) {
        struct fx_done_tag *tag = fx_sink__wait(&call->own);
        tag->fn(call, tag->ok);
    }
    fx_client__result(call, &result);
    if (result.code != FX_OK) fx_error_set(err, result.code, "%s", result.text);
    if (result.code == FX_OK && out) *(const void **)out = result.reply;
    fx_client__release(call);
    return result.code == FX_OK;
}

bool fx_client_call_wait(fx_client *client, const struct fx_client_request *request, void *out,
                         fx_error *err) {
    struct fx_client_request once = *request;
    FX_ASSERT(request->arena && request->message);
    once.on_message = NULL;
    return run(client, &once, out, err);
}

bool fx_client_stream_wait(fx_client *client, const struct fx_client_request *request,
                           fx_error *err) {
    FX_ASSERT(request->on_message && request->message);
    return run(client, request, NULL, err);
}
