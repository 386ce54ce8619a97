#pragma once
#include "common/model/ingest.h"
#include "common/model/ingest_plan.h"
#include "common/model/store_stage.h"

/* Copied as they are, but for what fx_import__template does. */
enum fx_side {
    FX_SIDE_CONFIG,
    FX_SIDE_GENERATION,
    FX_SIDE_TOKENIZER,
    FX_SIDE_TOKENIZER_CONFIG,
    FX_SIDES,
};
extern const char *const fx_side_names[FX_SIDES];

/** One import from begin to end. */
struct fx_import {
    const struct fx_ingest_opts *opts;
    struct fx_source source;
    struct fx_plan plan;
    struct fx_bytes side[FX_SIDES]; /* at NULL: the folder has none */
    struct fx_stage stage;
    struct fx_model_info info; /* version: once it is published */
    char config_digest[FX_SHA256_HEX];
    struct fx_manifest_file *files; /* parts, pack, sides; those it has not are nameless */
    uint32_t file_count;
    struct fx_ingest_progress progress;
    uint64_t reported; /* done_bytes when progress was last told */
};

/** A template that newer checkpoints keep in chat_template.jinja goes into tokenizer_config.json,
 *  where it has precedence in transformers too: readers then need two files and not three. */
FX_MUST bool fx_import__template(struct fx_import *import, fx_error *err);
/** Adds to progress and tells it about every MiB; false: stop. `import` is a struct fx_import. */
bool fx_import__step(void *import, uint64_t bytes);
/** Fills info, config_digest and files once all files are written. */
FX_MUST bool fx_import__describe(struct fx_import *import, fx_error *err);
/** Writes the manifest and switches the model to the new version. */
FX_MUST bool fx_import__publish(struct fx_import *import, fx_error *err);
