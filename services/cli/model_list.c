#include "services/cli/model_list.h"
#include <stdlib.h>
#include <string.h>
#include "common/base/heap.h"
#include "services/cli/rpc.h"

enum { DEADLINE_MS = 10000, ARENA_BYTES = 4 * 1024 * 1024 };

bool cli_model_list(const struct cli_settings *settings, fx_arena *arena,
                    Fractal__V1__ListModelsReply **reply, fx_error *err) {
    Fractal__V1__ListModelsRequest message = FRACTAL__V1__LIST_MODELS_REQUEST__INIT;
    struct cli_rpc rpc = {
        .service = "slicer",
        .addr = settings->slicer_addr,
        .method = "/fractal.v1.SlicerService/ListModels",
        .message = &message,
        .reply = &fractal__v1__list_models_reply__descriptor,
        .deadline_ms = DEADLINE_MS,
        .anonymous = true,
        .arena = arena,
    };
    return cli_rpc_call(settings, &rpc, reply, err);
}

bool cli_model_there(const struct cli_settings *settings, const char *name, bool *there,
                     fx_error *err) {
    Fractal__V1__ListModelsReply *reply = NULL;
    fx_auto(uint8_t) memory = fx_alloc(ARENA_BYTES, 1);
    fx_arena arena;
    *there = false;
    fx_arena_init(&arena, memory, memory ? ARENA_BYTES : 0);
    bool ok = cli_model_list(settings, &arena, &reply, err);
    for (size_t i = 0; ok && i < reply->n_models; i++)
        if (strcmp(reply->models[i]->name, name) == 0) *there = true;
    fx_arena_done(&arena);
    return ok;
}
