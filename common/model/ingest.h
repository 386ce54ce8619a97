#pragma once
#include "common/base/error.h"
#include "common/model/config.h"
#include "common/model/store.h"

enum {
    FX_PART_BYTES_MAX = 150000000, /* of one part file, header included */
    FX_PART_BYTES_MIN = 4096,
};

struct fx_ingest_progress {
    const char *stage;                /* read, pack (int4: quantise), digest, publish */
    uint64_t done_bytes, total_bytes; /* over all stages; done never falls */
};

/** What an import found beside the weights; spans are empty where the folder has no such file. */
struct fx_ingest_found {
    const struct fx_model_config *config;
    fx_span tokenizer_json, tokenizer_config_json;
};

struct fx_ingest_opts {
    const char *folder;    /* Hugging Face layout */
    const char *store_dir; /* exists */
    const char *name;
    enum fx_model_dtype dtype;
    uint32_t part_bytes_max; /* 0: FX_PART_BYTES_MAX */
    /** May be NULL. Called about every MiB; false ends the import with CANCELLED. */
    bool (*progress)(void *ctx, const struct fx_ingest_progress *progress);
    /** May be NULL. Asked before anything is written; false refuses the import with its `err`. */
    bool (*check)(void *ctx, const struct fx_ingest_found *found, fx_error *err);
    void *ctx;
};

/** Imports a checkpoint as a new version of `name`. Memory is bounded whatever the model's size.
 *  Until the version is whole and durable nothing of it can be seen; when it fails, or was killed,
 *  what is left is removed (by the next import). Several may run at once, also in other processes.
 *  `out` (may be NULL): the new version.
 *  @err INVALID_ARGUMENT, UNIMPLEMENTED, DATA_LOSS naming file, field or tensor; NOT_FOUND;
 *  RESOURCE_EXHAUSTED (disk full); CANCELLED */
FX_MUST bool fx_ingest(const struct fx_ingest_opts *opts, struct fx_model_info *out, fx_error *err);
