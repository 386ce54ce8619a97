#pragma once
#include "common/base/error.h"
#include "common/base/hash.h"
#include "common/base/span.h"
#include "common/model/config.h"
#include "common/quant/weight.h"

/** The model store: <dir>/<name>/<version>/{manifest.json, part-NNN.safetensors, pack-t8.bin,
 *  config.json, ...} and <dir>/<name>/current, which names the version in use. */

enum {
    FX_MODEL_NAME_MAX = 130,   /* with its NUL: "org/name", 64 characters each */
    FX_MODEL_VERSION_MAX = 16, /* with its NUL: a number */
    FX_MODELS_MAX = 4096,      /* of one store */
    FX_NUMERICS_ID_MAX = 96,   /* with its NUL */
    FX_NUMERICS_CONTRACT = 1,  /* version of the numerics contract */
    FX_MANIFEST_BYTES_MAX = 64 * 1024 * 1024,
};

/** The number of a model: the first 4 bytes, big endian, of SHA-256(name). */
uint32_t fx_model_number(const char *name);
/** "name" or "org/name" of [a-zA-Z0-9._-]{1,64} each, neither begins with '.'; the part after '/'
 *  is no number and not "current". @err INVALID_ARGUMENT saying what is wrong */
FX_MUST bool fx_model_name_check(const char *name, fx_error *err);

/** What a manifest says of a version. Plain data. */
struct fx_model_info {
    char name[FX_MODEL_NAME_MAX];
    char version[FX_MODEL_VERSION_MAX];
    uint32_t number;
    enum fx_model_dtype dtype;
    uint64_t created_s; /* since 1970 */
    uint64_t bytes;     /* of all files */
    uint32_t context_max, vocabulary;
    uint32_t eos_count;
    uint32_t eos_ids[FX_EOS_MAX];
    bool has_chat_template;
    char tokenizer_digest[FX_SHA256_HEX]; /* "": the model came without a tokenizer */
    char weight_digest[FX_SHA256_HEX];    /* of the parts, whatever the kernel layout */
};
/** "exact/1/int4-b64/f32/<16 hex of the weight digest>": what two workers must share to continue
 *  each other's generations. `kv_dtype`: "f32" or "f16". */
void fx_numerics_id(const struct fx_model_info *info, const char *kv_dtype,
                    char out[FX_NUMERICS_ID_MAX]);

struct fx_mlp_weights {
    struct fx_weight gate, up; /* [intermediate, hidden] */
    struct fx_weight down;     /* [hidden, intermediate] */
};
struct fx_layer_weights {
    /* What a family lacks has data NULL. Norms and biases are F32_ROW [1, width]. */
    struct fx_weight attn_norm, mlp_norm;           /* of what goes in */
    struct fx_weight attn_post_norm, mlp_post_norm; /* of what comes out */
    struct fx_weight q_bias, k_bias, v_bias;
    struct fx_weight q_norm, k_norm;      /* as wide as a head, or as all heads of a row */
    struct fx_weight q;                   /* [heads * head_dim, hidden] */
    struct fx_weight k, v;                /* [kv_heads * head_dim, hidden] */
    struct fx_weight o;                   /* [hidden, heads * head_dim] */
    struct fx_mlp_weights mlp;            /* of dense layers */
    struct fx_mlp_weights shared;         /* the expert that every token meets */
    struct fx_weight shared_gate;         /* F32_T8 [1, hidden] */
    struct fx_weight router;              /* F32_T8 [experts, hidden]; data NULL when dense */
    const struct fx_mlp_weights *experts; /* [experts]; NULL when dense */
};
struct fx_model_weights {
    struct fx_weight embed, lm_head;       /* [vocabulary, hidden]; the same data when tied */
    struct fx_weight norm;                 /* F32_ROW [1, hidden] */
    const struct fx_layer_weights *layers; /* [config.layers] */
};

/** An open version: its pack file mapped shared and read-only. Immutable. @thread any */
typedef struct fx_model fx_model;

/** Opens the current version of `name`. Sizes, shapes and layouts are checked, digests are not
 *  (fx_store_verify). @own caller, fx_model_free() @err NOT_FOUND, DATA_LOSS naming the file or
 *  tensor, INVALID_ARGUMENT (name) */
FX_MUST bool fx_store_open(const char *dir, const char *name, fx_model **out, fx_error *err);
/** Imports a Hugging Face folder into a temporary store below `tmp_dir` (NULL: /tmp) and opens it;
 *  its files have no name any more when this returns. */
FX_MUST bool fx_store_open_folder(const char *folder, enum fx_model_dtype dtype,
                                  const char *tmp_dir, fx_model **out, fx_error *err);
void fx_model_free(fx_model *model);
FX_DEFINE_AUTO(fx_model, fx_model_free)
/** Borrowed from the model. */
const struct fx_model_config *fx_model_get_config(const fx_model *model);
const struct fx_model_weights *fx_model_get_weights(const fx_model *model);
const struct fx_model_info *fx_model_get_info(const fx_model *model);
/** The mapping, for touching it at load. */
fx_span fx_model_get_pack(const fx_model *model);

/** Removes what killed imports left, as the next import would. */
void fx_store_clean(const char *dir);
/** The info of one model's current version. @err NOT_FOUND, DATA_LOSS */
FX_MUST bool fx_store_info(const char *dir, const char *name, struct fx_model_info *out,
                           fx_error *err);
struct fx_model_list {
    struct fx_model_info *at; /* sorted by name; free() */
    size_t count;
};
/** Every model that has a current version; one whose manifest can't be read is left out.
 *  @own caller, free(out->at) @err NOT_FOUND (dir), RESOURCE_EXHAUSTED */
FX_MUST bool fx_store_list(const char *dir, struct fx_model_list *out, fx_error *err);

/** Bytes on the heap. @own free(at) */
struct fx_bytes {
    uint8_t *at;
    size_t len;
};
/** manifest.json as it lies. */
FX_MUST bool fx_store_manifest(const char *dir, const char *name, struct fx_bytes *out,
                               fx_error *err);
/** tokenizer.json and tokenizer_config.json of any model by their digest (64 hex digits), checked.
 *  @err NOT_FOUND, DATA_LOSS, INVALID_ARGUMENT */
FX_MUST bool fx_store_tokenizer(const char *dir, const char *digest, struct fx_bytes *tokenizer,
                                struct fx_bytes *config, fx_error *err);

struct fx_store_verified {
    uint32_t files;
    uint64_t bytes;
};
/** Recomputes every digest. `stop(ctx)` (may be NULL) is asked about every MiB; true ends it with
 *  CANCELLED. @err NOT_FOUND, DATA_LOSS naming the first file that differs */
FX_MUST bool fx_store_verify(const char *dir, const char *name, bool (*stop)(void *ctx), void *ctx,
                             struct fx_store_verified *out, fx_error *err);
