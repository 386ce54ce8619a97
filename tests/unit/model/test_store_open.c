/* A version whose files disagree is refused when it is opened, naming file, member or tensor. */
#include "tests/unit/model/store_fixture.h"

#define Q "model.layers.0.self_attn.q_proj.weight"

struct row {
    const char *name, *in; /* "current" lies beside the versions */
    const char *old, *new; /* as long; old NULL: the file is replaced by new, new NULL: removed */
    enum fx_code code;
    const char *text;
};
static const struct row rows[] = {
    {"whole",                   NULL,                   NULL,                    NULL,                                         FX_OK,        ""                                      },
    {"no current",              "current",              NULL,                    NULL,                                         FX_NOT_FOUND, "no model 'm'"                          },
    {"current of another",      "current",              "1\n",                   "7\n",                                        FX_DATA_LOSS, "manifest.json"                         },
    {"current is no number",    "current",              "1\n",                   "x\n",                                        FX_DATA_LOSS, "names no version"                      },
    {"current leads outside",   "current",              NULL,                    "../../etc\n",                                FX_DATA_LOSS, "names no version"                      },
    {"empty current",           "current",              NULL,                    "",                                           FX_DATA_LOSS, "names no version"                      },
    {"no manifest",             "manifest.json",        NULL,                    NULL,                                         FX_DATA_LOSS, "manifest.json"                         },
    {"manifest is no JSON",     "manifest.json",        "{",                     "[",                                          FX_DATA_LOSS, "manifest.json: JSON"                   },
    {"another schema",          "manifest.json",        "\"schema\": 1",         "\"schema\": 2",                              FX_DATA_LOSS,
     "schema 2, this program reads 1"                                                                                                                                                },
    {"another name",            "manifest.json",        "\"name\": \"m\"",       "\"name\": \"n\"",                            FX_DATA_LOSS,
     "its manifest is that of 'n'"                                                                                                                                                   },
    {"unknown dtype",           "manifest.json",        "\"dtype\": \"int4\"",   "\"dtype\": \"int5\"",                        FX_DATA_LOSS,
     "dtype 'int5'"                                                                                                                                                                  },
    {"digest of no hex",        "manifest.json",        "\"weight_digest\": \"", "\"weight_digest\":\"g",
     FX_DATA_LOSS,                                                                                                                           "weight_digest"                         },
    {"negative number",         "manifest.json",        "\"vocabulary\": 320",   "\"vocabulary\": -20",                        FX_DATA_LOSS,
     "vocabulary"                                                                                                                                                                    },
    {"tensor missing",          "manifest.json",        "\"" Q "\"",             "\"nodel.layers.0.self_attn.q_proj.weight\"",
     FX_DATA_LOSS,                                                                                                                           "tensor '" Q "' is missing"             },
    {"other rows",              "manifest.json",        "\"rows\": 320",         "\"rows\": 328",                              FX_DATA_LOSS,
     "tensor 'model.embed_tokens.weight': the manifest disagrees"                                                                                                                    },
    {"other layout",            "manifest.json",        "i4-t8",                 "f9-t8",                                      FX_DATA_LOSS, "layout 'f9-t8'"                        },
    {"f16 layout",              "manifest.json",        "\"layout\": \"i4-t8\"", "\"layout\":\"f16-t8\"",                      FX_DATA_LOSS,
     "disagrees"                                                                                                                                                                     },
    {"offset between",          "manifest.json",        "\"offset\": 0",         "\"offset\": 4",                              FX_DATA_LOSS,
     "tensor 'model.embed_tokens.weight' does not lie in"                                                                                                                            },
    {"offset past the end",     "manifest.json",        "\"offset\": 11520",     "\"offset\": 99968",                          FX_DATA_LOSS,
     "does not lie in 'pack-t8.bin'"                                                                                                                                                 },
    {"file outside",            "manifest.json",        "\"pack-t8.bin\": {",    "\"../../pack\": { ",                         FX_DATA_LOSS,
     "is no file name"                                                                                                                                                               },
    {"config of another shape", "config.json",          "\"hidden_size\": 64",   "\"hidden_size\": 32",
     FX_DATA_LOSS,                                                                                                                           "the manifest disagrees with the config"},
    {"longer config",           "config.json",          NULL,                    "{}",                                         FX_DATA_LOSS, "file 'config.json' has 2 bytes"        },
    {"no pack",                 "pack-t8.bin",          NULL,                    NULL,                                         FX_DATA_LOSS, "file 'pack-t8.bin' is missing"         },
    {"cut pack",                "pack-t8.bin",          NULL,                    "x",                                          FX_DATA_LOSS, "file 'pack-t8.bin' has 1 bytes"        },
    {"no part",                 "part-000.safetensors", NULL,                    NULL,                                         FX_DATA_LOSS,
     "file 'part-000.safetensors' is missing"                                                                                                                                        },
};

static void spoil(const struct row *row, const char *store) {
    char dir[FIXTURE_PATH], path[FIXTURE_PATH];
    if (!row->in) return;
    fixture_path(dir, store, strcmp(row->in, "current") == 0 ? "m" : "m/1");
    fixture_path(path, dir, row->in);
    if (row->old)
        fixture_patch(dir, row->in, row->old, row->new);
    else if (row->new)
        fixture_write(dir, row->in, row->new, strlen(row->new));
    else
        assert_int_equal(unlink(path), 0);
}

static void test_open(void **state) {
    const struct row *row = *state;
    struct fixture_dir store;
    fx_auto(fx_model) model = NULL;
    fx_error err = {0};
    fixture_dir_make(&store);
    fixture_import(FX_GOLDENS "llama", store.path, "m", FX_MODEL_INT4, 0, NULL);
    spoil(row, store.path);
    bool ok = fx_store_open(store.path, "m", &model, &err);
    fixture_dir_remove(&store);
    if (ok != (row->code == FX_OK)) fail_msg("%s", ok ? "opened" : err.text);
    if (!ok) fixture_expect(&err, row->code, row->text);
}
FX_TEST_MAIN(test_open, rows)
