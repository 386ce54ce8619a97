#pragma once
#include "common/model/family.h"

extern const struct fx_family fx_family_llama, fx_family_mistral, fx_family_mixtral,
    fx_family_olmo2, fx_family_olmoe, fx_family_phi3, fx_family_qwen2, fx_family_qwen2_moe,
    fx_family_qwen3, fx_family_qwen3_moe;
