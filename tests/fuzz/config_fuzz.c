/* config.json, then after a NUL generation_config.json: what is accepted can be computed with, and
 * its list of tensors is whole. */
#include <math.h>
#include <string.h>
#include "tests/fuzz/fuzz.h"
#include "common/model/pack.h"

static void check(const struct fx_model_config *config) {
    struct fx_pack_tensor tensor;
    uint32_t count = fx_pack_count(config);
    FX_ASSERT(config->heads % config->kv_heads == 0 && config->head_dim % 2 == 0);
    FX_ASSERT(config->experts_per_token <= config->experts);
    FX_ASSERT(isfinite(config->norm_eps) && config->norm_eps > 0 && config->rope.theta > 0);
    for (uint32_t i = 0; i < config->eos_count; i++)
        FX_ASSERT(config->eos_ids[i] < config->vocabulary);
    FX_ASSERT(!config->has_bos || config->bos_id < config->vocabulary);
    for (uint32_t i = 0; i < count; i += count / 64 + 1) {
        fx_pack_tensor(config, i, &tensor);
        FX_ASSERT(tensor.rows && tensor.cols && strlen(tensor.name) < sizeof tensor.name - 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    size_t first = nul ? (size_t)(nul - data) : size;
    struct fx_model_config config;
    fx_error err = {0};
    fx_span generation = {nul ? nul + 1 : NULL, nul ? size - first - 1 : 0};
    if (fx_model_config_parse((fx_span){data, first}, generation, &config, &err))
        check(&config);
    else
        FX_ASSERT(err.code != FX_OK && err.text[0]);
    return 0;
}
