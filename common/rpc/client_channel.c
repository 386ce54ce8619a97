#include <stdio.h>
#include <stdlib.h>
#include "common/base/heap.h"
#include "common/rpc/client_internal.h"

enum {
    TARGET_MAX = 1024,
    BACKOFF_FIRST_MS = 100,
    BACKOFF_MIN_MS = 1000,
    BACKOFF_MAX_MS = 2000,
    KEEPALIVE_TIMEOUT_MS = 5000,
    RESOLVE_INTERVAL_MS = 1000,
};

/* "a:1,b:2" without a scheme is a list of addresses. */
static FX_MUST bool target_of(const char *target, char out[TARGET_MAX], fx_error *err) {
    bool is_list = strchr(target, ',') && !strchr(target, '/') &&
                   strncmp(target, "ipv4:", 5) != 0 && strncmp(target, "ipv6:", 5) != 0;
    int len = snprintf(out, TARGET_MAX, "%s%s", is_list ? "ipv4:" : "", target);
    if (len <= 0 || len >= TARGET_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "a target of %d bytes", len);
    return true;
}

static const char *service_config(const struct fx_client_opts *opts) {
    return opts->health_check_off ? "{\"loadBalancingConfig\":[{\"round_robin\":{}}]}"
                                  : "{\"loadBalancingConfig\":[{\"round_robin\":{}}],"
                                    "\"healthCheckConfig\":{\"serviceName\":\"\"}}";
}

static FX_MUST bool channel_open(const fx_client *client, struct fx_client_channel *out,
                                 fx_error *err) {
    const struct fx_client_opts *opts = &client->opts;
    char target[TARGET_MAX];
    grpc_channel_credentials *credentials;
    if (!target_of(opts->target, target, err)) return false;
    if (!fx_tls__client(client->certs, &credentials, &out->generation, err)) return false;
    int bytes_max = (int)opts->message_bytes_max;
    grpc_arg args[] = {
        fx_rpc__arg_text(GRPC_ARG_SERVICE_CONFIG, service_config(opts)),
        fx_rpc__arg_int(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1),
        fx_rpc__arg_int(GRPC_ARG_ENABLE_RETRIES, 0) /* client_call.c has its own */,
        fx_rpc__arg_int(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
        fx_rpc__arg_int(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
        fx_rpc__arg_int(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, bytes_max),
        fx_rpc__arg_int(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, bytes_max),
        fx_rpc__arg_int(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, BACKOFF_FIRST_MS),
        fx_rpc__arg_int(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, BACKOFF_MIN_MS),
        fx_rpc__arg_int(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, BACKOFF_MAX_MS),
        fx_rpc__arg_int(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, RESOLVE_INTERVAL_MS),
        fx_rpc__arg_int(GRPC_ARG_KEEPALIVE_TIME_MS, (int)opts->keepalive_ms),
        fx_rpc__arg_int(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_TIMEOUT_MS),
        fx_rpc__arg_int(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
        fx_rpc__arg_int(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
        /* only with a name of its own, so last */
        fx_rpc__arg_text(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG, opts->tls_name),
    };
    grpc_channel_args all = {FX_COUNT(args) - (opts->tls_name ? 0 : 1), args};
    out->core = grpc_channel_create(target, credentials, &all);
    grpc_channel_credentials_release(credentials);
    if (!out->core) return fx_fail(err, FX_INVALID_ARGUMENT, "no channel to '%s'", target);
    return true;
}

static void channel_free(struct fx_client_channel *channel) {
    grpc_channel_destroy(channel->core);
    free(channel);
}

static FX_MUST bool channel_new(const fx_client *client, struct fx_client_channel **out,
                                fx_error *err) {
    struct fx_client_channel *channel = fx_alloc(1, sizeof *channel);
    if (!channel) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a channel");
    if (!channel_open(client, channel, err)) {
        free(channel);
        return false;
    }
    channel->users = 1;
    *out = channel;
    return true;
}

bool fx_client__channel_open(fx_client *client, fx_error *err) {
    return fx_tls__open(&client->opts.tls, &client->certs, err) &&
           channel_new(client, &client->channel, err);
}

/* Under the lock. Certificates are a channel's for its life: with others it is another channel.
 * What was connected keeps what it has where there is no memory for one. */
static struct fx_client_channel *renew(fx_client *client) {
    struct fx_client_channel *next = NULL, *old = client->channel;
    fx_error err;
    if (!client->certs || fx_certs_generation(client->certs) == old->generation) return NULL;
    if (!channel_new(client, &next, &err)) return NULL;
    client->channel = next;
    return old;
}

struct fx_client_channel *fx_client__channel_take(fx_client *client) {
    pthread_mutex_lock(&client->lock);
    struct fx_client_channel *old = renew(client), *channel = client->channel;
    channel->users++;
    pthread_mutex_unlock(&client->lock);
    fx_client__channel_drop(client, old);
    return channel;
}

void fx_client__channel_drop(fx_client *client, struct fx_client_channel *channel) {
    if (!channel) return;
    pthread_mutex_lock(&client->lock);
    bool last = --channel->users == 0;
    pthread_mutex_unlock(&client->lock);
    if (last) channel_free(channel);
}

void fx_client__channel_close(fx_client *client) {
    fx_client__channel_drop(client, client->channel);
    fx_certs_free(client->certs);
}
