#pragma once
#include "common/rpc/client.h"
#include "services/cli/cli.h"

/** A blocking gRPC call of the administrator to one service. */
struct cli_rpc {
    const char *service; /* "tenant", for messages */
    const char *addr;
    const char *method;
    const void *message;
    const ProtobufCMessageDescriptor *reply;
    uint32_t deadline_ms;
    bool anonymous; /* without the bootstrap token */
    fx_arena *arena;
    bool (*on_message)(void *user, const void *message); /* server streams */
    void *user;
};

/** Unary: `*(T **)out` is a message in the arena; streams: out NULL. @err the call's status, with
 *  the remedy where nothing listens */
FX_MUST bool cli_rpc_call(const struct cli_settings *settings, const struct cli_rpc *rpc, void *out,
                          fx_error *err);
