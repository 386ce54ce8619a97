#pragma once
#include "common/base/arena.h"
#include "fractal/v1/slicer.pb-c.h"
#include "services/cli/cli.h"

/** What the slicer has. `reply` lies in `arena`. @err as cli_rpc_call */
FX_MUST bool cli_model_list(const struct cli_settings *settings, fx_arena *arena,
                            Fractal__V1__ListModelsReply **reply, fx_error *err);
/** Whether there is one of that name. @err as cli_rpc_call */
FX_MUST bool cli_model_there(const struct cli_settings *settings, const char *name, bool *there,
                             fx_error *err);
