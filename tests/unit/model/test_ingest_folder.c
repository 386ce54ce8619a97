/* Folders that are no checkpoint, or a broken one of several files. */
#include "tests/unit/model/store_fixture.h"

#define SHARDED FX_GOLDENS "llama-sharded"
#define INDEX "model.safetensors.index.json"
#define SHARD_2 "model-00002-of-00004.safetensors"

static const char *const shards[] = {"config.json",
                                     "generation_config.json",
                                     INDEX,
                                     "model-00001-of-00004.safetensors",
                                     SHARD_2,
                                     "model-00003-of-00004.safetensors",
                                     "model-00004-of-00004.safetensors"};

struct row {
    const char *name;
    const char *without;        /* a file left out */
    const char *in, *old, *new; /* a patch */
    const char *replaced;       /* a file replaced by `by` */
    const char *by;
    enum fx_code code;
    const char *text;
};
static const struct row rows[] = {
    {"whole",                    NULL,                     NULL,  NULL,                               NULL,                                                       NULL,                               NULL,                         FX_OK,               ""             },
    {"no config",                "config.json",            NULL,  NULL,                               NULL,                                                       NULL,                               NULL,                         FX_NOT_FOUND,        "'config.json'"},
    {"no generation config",     "generation_config.json", NULL,  NULL,                               NULL,                                                       NULL,                               NULL,                         FX_OK,               ""             },
    {"no index",                 INDEX,                    NULL,  NULL,                               NULL,                                                       NULL,                               NULL,                         FX_NOT_FOUND,
     "neither model.safetensors nor"                                                                                                                                                                                                                                    },
    {"no shard",                 SHARD_2,                  NULL,  NULL,                               NULL,                                                       NULL,                               NULL,                         FX_NOT_FOUND,
     "'model-00002-of-00004.safetensors'"                                                                                                                                                                                                                               },
    {"index leads outside",      NULL,                     INDEX, "model-00003-of-00004.safetensors",
     "../../../../../../../etc/passwd/",                                                                                                                          NULL,                               NULL,                         FX_INVALID_ARGUMENT, "no file name" },
    {"index names another file", NULL,                     INDEX,
     "\"lm_head.weight\": \"model-00004-of-00004.safetensors\"",                                      "\"lm_head.weight\": \"model-00001-of-00004.safetensors\"", NULL,                               NULL,                         FX_INVALID_ARGUMENT,
     "tensor 'lm_head.weight' is not in 'model-00001-of-00004.safetensors'"                                                                                                                                                                                             },
    {"index is no JSON",         NULL,                     NULL,  NULL,                               NULL,                                                       INDEX,                              "{\"weight_map\":",           FX_INVALID_ARGUMENT,
     INDEX ": JSON"                                                                                                                                                                                                                                                     },
    {"index without a map",      NULL,                     NULL,  NULL,                               NULL,                                                       INDEX,                              "{}",                         FX_INVALID_ARGUMENT,
     "weight_map is not"                                                                                                                                                                                                                                                },
    {"map of numbers",           NULL,                     NULL,  NULL,                               NULL,                                                       INDEX,                              "{\"weight_map\":{\"a\":1}}",
     FX_INVALID_ARGUMENT,                                                                                                                                                                                                                                "no file name" },
    {"empty map",                NULL,                     NULL,  NULL,                               NULL,                                                       INDEX,                              "{\"weight_map\":{}}",        FX_INVALID_ARGUMENT,
     "weight_map is not"                                                                                                                                                                                                                                                },
    {"cut shard",                NULL,                     NULL,  NULL,                               NULL,                                                       "model-00003-of-00004.safetensors", "\1",                         FX_DATA_LOSS,
     "'model-00003-of-00004.safetensors': 1 bytes"                                                                                                                                                                                                                      },
};

static void make(const struct row *row, const char *dir) {
    for (size_t i = 0; i < FX_COUNT(shards); i++)
        if (!row->without || strcmp(row->without, shards[i]) != 0)
            fixture_copy(SHARDED, dir, shards[i]);
    if (row->in) fixture_patch(dir, row->in, row->old, row->new);
    if (row->replaced) fixture_write(dir, row->replaced, row->by, strlen(row->by));
}

static void test_folder(void **state) {
    const struct row *row = *state;
    struct fixture_dir folder, store;
    fx_error err = {0};
    fixture_dir_make(&folder);
    fixture_dir_make(&store);
    make(row, folder.path);
    bool ok = fx_ingest(
        &(struct fx_ingest_opts){
            .folder = folder.path, .store_dir = store.path, .name = "m", .dtype = FX_MODEL_INT4},
        NULL, &err);
    if (ok != (row->code == FX_OK)) fail_msg("%s", ok ? "accepted" : err.text);
    if (!ok) fixture_expect(&err, row->code, row->text);
    fixture_dir_remove(&folder);
    fixture_dir_remove(&store);
}
FX_TEST_MAIN(test_folder, rows)
