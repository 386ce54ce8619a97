#include "services/cli/rpc.h"
#include <stdio.h>

static const char *optional(const char *text) {
    return *text ? text : NULL;
}

static FX_MUST bool explain(const struct cli_rpc *rpc, fx_error *err) {
    if (err->code == FX_UNAVAILABLE)
        return fx_fail(err, FX_UNAVAILABLE,
                       "the %s service does not answer at %s (run ./fractal up)", rpc->service,
                       rpc->addr);
    if (err->code == FX_UNAUTHENTICATED)
        return fx_wrap(err, "the %s service refuses the bootstrap token", rpc->service);
    return fx_wrap(err, "%s", rpc->service);
}

static FX_MUST bool call(fx_client *client, const struct fx_client_request *request, void *out,
                         fx_error *err) {
    if (request->on_message) return fx_client_stream_wait(client, request, err);
    return fx_client_call_wait(client, request, out, err);
}

bool cli_rpc_call(const struct cli_settings *settings, const struct cli_rpc *rpc, void *out,
                  fx_error *err) {
    char token[CLI_SECRET_MAX], bearer[CLI_SECRET_MAX + 8];
    fx_auto(fx_client) client = NULL;
    struct fx_client_opts opts = {
        .target = rpc->addr,
        .tls = {optional(settings->tls_ca), optional(settings->tls_cert),
                optional(settings->tls_key)},
        .health_check_off = true, /* its own status tells more */
    };
    if (!rpc->anonymous && !cli_bootstrap_token(settings, token, err)) return false;
    if (!rpc->anonymous) (void)snprintf(bearer, sizeof bearer, "Bearer %s", token);
    if (!fx_client_open(&opts, &client, err)) return fx_wrap(err, "%s", rpc->addr);
    struct fx_client_metadata metadata = {"authorization", bearer};
    struct fx_client_request request = {
        .method = rpc->method,
        .message = rpc->message,
        .reply = rpc->reply,
        .deadline_ms = rpc->deadline_ms,
        .metadata = &metadata,
        .metadata_count = rpc->anonymous ? 0 : 1,
        .arena = rpc->arena,
        .on_message = rpc->on_message,
        .user = rpc->user,
    };
    return call(client, &request, out, err) || explain(rpc, err);
}
