#pragma once
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
/** @err ALREADY_EXISTS ... */
FX_MUST bool cli_admin_create_tenant(const struct cli_settings *settings, const char *name,
                                     uint32_t weight, fx_arena *arena, fx_error *err);
