#include "services/cli/admin.h"

Fractal__V1__Limits cli_limits_message(const struct cli_limits *limits) {
    Fractal__V1__Limits message = FRACTAL__V1__LIMITS__INIT;
    message.requests_per_minute = (uint32_t)limits->rpm.value;
    message.tokens_per_minute = (uint32_t)limits->tpm.value;
    message.streams = (uint32_t)limits->streams.value;
    return message;
}

const char *cli_limits_text(const Fractal__V1__Limits *limits, char out[CLI_LIMITS_TEXT]) {
    static const Fractal__V1__Limits none = FRACTAL__V1__LIMITS__INIT;
    const Fractal__V1__Limits *in = limits ? limits : &none;
    const uint32_t values[] = {in->requests_per_minute, in->tokens_per_minute, in->streams};
    static const char *const units[] = {"rpm", "tpm", "streams"};
    size_t len = 0;
    for (size_t i = 0; i < FX_COUNT(values); i++)
        if (values[i])
            len += (size_t)snprintf(out + len, CLI_LIMITS_TEXT - len, "%s%u %s", len ? ", " : "",
                                    values[i], units[i]);
    if (!len) (void)snprintf(out, CLI_LIMITS_TEXT, "-");
    return out;
}

bool cli_admin_set_limits(const struct cli_settings *settings, const char *key_id,
                          const char *tenant, const struct cli_limits *limits, fx_arena *arena,
                          fx_error *err) {
    Fractal__V1__SetLimitsRequest message = FRACTAL__V1__SET_LIMITS_REQUEST__INIT;
    Fractal__V1__SetLimitsReply *reply = NULL;
    Fractal__V1__Limits wanted = cli_limits_message(limits);
    char *target = fx_arena_copy(arena, fx_span_str(key_id ? key_id : tenant));
    if (!target) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a call");
    message.limits = &wanted;
    if (key_id) {
        message.target_case = FRACTAL__V1__SET_LIMITS_REQUEST__TARGET_KEY_ID;
        message.key_id = target;
    } else {
        message.target_case = FRACTAL__V1__SET_LIMITS_REQUEST__TARGET_TENANT;
        message.tenant = target;
    }
    return cli_admin_call(settings, "SetLimits", &message,
                          &fractal__v1__set_limits_reply__descriptor, arena, &reply, err);
}
