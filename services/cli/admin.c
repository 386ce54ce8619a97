#include "services/cli/admin.h"
#include "common/base/heap.h"

int cli_admin_run(const struct cli_settings *settings,
                  bool (*action)(const struct cli_settings *settings, fx_arena *arena,
                                 const void *args, fx_error *err),
                  const void *args) {
    fx_error err = {0};
    fx_arena arena;
    fx_auto(uint8_t) memory = fx_alloc(CLI_ADMIN_ARENA_BYTES, 1);
    fx_arena_init(&arena, memory, memory ? CLI_ADMIN_ARENA_BYTES : 0);
    bool ok = action(settings, &arena, args, &err);
    fx_arena_done(&arena);
    return ok ? CLI_OK : cli_failed(&err);
}

bool cli_admin_call(const struct cli_settings *settings, const char *method, const void *message,
                    const ProtobufCMessageDescriptor *reply_type, fx_arena *arena, void *out,
                    fx_error *err) {
    char path[96];
    (void)snprintf(path, sizeof path, "/fractal.v1.TenantService/%s", method);
    struct cli_rpc rpc = {
        .service = "tenant",
        .addr = settings->tenant_addr,
        .method = path,
        .message = message,
        .reply = reply_type,
        .deadline_ms = CLI_ADMIN_DEADLINE_MS,
        .arena = arena,
    };
    return cli_rpc_call(settings, &rpc, out, err);
}

bool cli_admin_create_tenant(const struct cli_settings *settings, const char *name, uint32_t weight,
                             const struct cli_limits *limits, fx_arena *arena, fx_error *err) {
    Fractal__V1__CreateTenantRequest message = FRACTAL__V1__CREATE_TENANT_REQUEST__INIT;
    Fractal__V1__Limits wanted = FRACTAL__V1__LIMITS__INIT;
    Fractal__V1__Tenant *tenant = NULL;
    message.name = fx_arena_copy(arena, fx_span_str(name));
    message.weight = weight;
    if (limits) wanted = cli_limits_message(limits);
    message.limits = &wanted;
    if (!message.name) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a call");
    return cli_admin_call(settings, "CreateTenant", &message, &fractal__v1__tenant__descriptor,
                          arena, &tenant, err);
}
