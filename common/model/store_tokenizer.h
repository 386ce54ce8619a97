#pragma once
#include "common/model/store.h"

/** Hex SHA-256 over the SHA-256 of tokenizer.json and that of tokenizer_config.json (empty: of no
 *  bytes). */
void fx_store__tokenizer_digest(fx_span tokenizer_json, fx_span tokenizer_config_json,
                                char out[FX_SHA256_HEX]);
