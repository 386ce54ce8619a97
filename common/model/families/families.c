#include "common/model/families/families.h"

static const struct fx_family *const families[] = {
    &fx_family_llama, &fx_family_mistral,  &fx_family_mixtral, &fx_family_olmo2,
    &fx_family_olmoe, &fx_family_phi3,     &fx_family_qwen2,   &fx_family_qwen2_moe,
    &fx_family_qwen3, &fx_family_qwen3_moe};

const struct fx_family *fx_family_find(const char *name) {
    for (size_t i = 0; i < FX_COUNT(families); i++)
        if (strcmp(families[i]->name, name) == 0) return families[i];
    return NULL;
}

const char *fx_family_names(void) {
    return "llama, mistral, mixtral, olmo2, olmoe, phi3, qwen2, qwen2_moe, qwen3, qwen3_moe";
}
