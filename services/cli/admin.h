#pragma once
#include "fractal/v1/tenant.pb-c.h"
#include "services/cli/rpc.h"

/** Calls of the tenant service that several commands make. */

enum { CLI_ADMIN_DEADLINE_MS = 10000, CLI_ADMIN_ARENA_BYTES = 1024 * 1024 };

/** Runs `action` with an arena and prints its failure; returns the exit status. */
int cli_admin_run(const struct cli_settings *settings,
                  bool (*action)(const struct cli_settings *settings, fx_arena *arena,
                                 const void *args, fx_error *err),
                  const void *args);
/** One unary call, `method` without its service: "CreateKey". */
FX_MUST bool cli_admin_call(const struct cli_settings *settings, const char *method,
                            const void *message, const ProtobufCMessageDescriptor *reply_type,
                            fx_arena *arena, void *out, fx_error *err);
/** Limits as options; one that was not given is none. */
struct cli_limits {
    struct cli_u64 rpm, tpm, streams;
};
/** A row of a command's option table, for the member `limits` of its arguments. */
#define CLI_LIMIT(args, field, most, help)                                                         \
    { #field, CLI_U64, offsetof(args, limits.field), 0, most, "N", NULL, help " (0: no limit)" }
Fractal__V1__Limits cli_limits_message(const struct cli_limits *limits);
/** "60 rpm, 10000 tpm" or "-"; `out` holds CLI_LIMITS_TEXT. NULL is none. */
enum { CLI_LIMITS_TEXT = 64 };
const char *cli_limits_text(const Fractal__V1__Limits *limits, char out[CLI_LIMITS_TEXT]);

/** `limits` may be NULL. @err ALREADY_EXISTS ... */
FX_MUST bool cli_admin_create_tenant(const struct cli_settings *settings, const char *name,
                                     uint32_t weight, const struct cli_limits *limits,
                                     fx_arena *arena, fx_error *err);
/** SetLimits; exactly one of `key_id` and `tenant` is not NULL. @err NOT_FOUND ... */
FX_MUST bool cli_admin_set_limits(const struct cli_settings *settings, const char *key_id,
                                  const char *tenant, const struct cli_limits *limits,
                                  fx_arena *arena, fx_error *err);
