/* tokenizer.json files that we can't run exactly, or that are none: each a change of a good one. */
#include "tests/unit/model/text_fixture.h"

struct row {
    const char *name;
    const char *path;  /* keys and indexes by '/'; the last is set, or removed if value is NULL */
    const char *value; /* JSON */
    enum fx_code code;
    const char *says;
};

static const struct row rows[] = {
    {"normalizer",                    "normalizer",                                  "{\"type\":\"NFKC\"}",                           FX_UNIMPLEMENTED,    "normalizer NFKC"             },
    {"normalizer in a sequence",      "normalizer",
     "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"Lowercase\"}]}",                                         FX_UNIMPLEMENTED,    "normalizer Lowercase"        },
    {"normalizer without a type",     "normalizer",                                  "{}",                                            FX_UNIMPLEMENTED,    "(no type)"                   },
    {"sequence without parts",        "normalizer",                                  "{\"type\":\"Sequence\"}",                       FX_INVALID_ARGUMENT,
     "normalizers"                                                                                                                                                                       },
    {"prepend of nothing",            "normalizer",                                  "{\"type\":\"Prepend\"}",                        FX_INVALID_ARGUMENT, "Prepend"                     },
    {"replace without a pattern",     "normalizer",                                  "{\"type\":\"Replace\",\"content\":\"\"}",
     FX_INVALID_ARGUMENT,                                                                                                                                  "String or a Regex"           },
    {"replace of nothing",            "normalizer",
     "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"x\"}",                                                        FX_UNIMPLEMENTED,
     "empty"                                                                                                                                                                             },
    {"no pre-tokenizer",              "pre_tokenizer",                               "null",                                          FX_UNIMPLEMENTED,
     "decoder ByteLevel with this pre_tokenizer"                                                                                                                                         },
    {"other pre-tokenizer",           "pre_tokenizer/type",                          "\"BertPreTokenizer\"",                          FX_UNIMPLEMENTED,
     "pre_tokenizer BertPreTokenizer"                                                                                                                                                    },
    {"behind ByteLevel",              "pre_tokenizer",
     "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\"},{\"type\":\"Digits\"}]}",                                    FX_UNIMPLEMENTED,    "Digits after ByteLevel"      },
    {"too many parts",                "pre_tokenizer",
     "{\"type\":\"Sequence\",\"pretokenizers\":[1,2,3,4,5,6,7,8,9]}",                                                                 FX_UNIMPLEMENTED,
     "more than 8 parts"                                                                                                                                                                 },
    {"split without a behavior",      "pre_tokenizer",
     "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"}}",                                                                           FX_INVALID_ARGUMENT, "behavior"                    },
    {"split of another behavior",     "pre_tokenizer",
     "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":\"Lost\"}",                                                     FX_INVALID_ARGUMENT, "Lost"                        },
    {"metaspace of nothing",          "pre_tokenizer",                               "{\"type\":\"Metaspace\",\"replacement\":\"\"}",
     FX_INVALID_ARGUMENT,                                                                                                                                  "replacement"                 },
    {"metaspace of another scheme",   "pre_tokenizer",
     "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"last\"}",                                                    FX_INVALID_ARGUMENT, "last"                        },
    {"fallback for byte level",       "decoder",                                     "{\"type\":\"ByteFallback\"}",                   FX_UNIMPLEMENTED,
     "decoder ByteFallback"                                                                                                                                                              },
    {"decoder behind ByteLevel",      "decoder",
     "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteLevel\"},{\"type\":\"Fuse\"}]}",                                           FX_UNIMPLEMENTED,    "decoder Fuse after ByteLevel"},
    {"no decoder",                    "decoder",                                     "null",                                          FX_UNIMPLEMENTED,    "decoder null"                },
    {"other decoder",                 "decoder/type",                                "\"WordPiece\"",                                 FX_UNIMPLEMENTED,    "WordPiece"                   },
    {"other model",                   "model/type",                                  "\"Unigram\"",                                   FX_UNIMPLEMENTED,    "model Unigram"               },
    {"no model",                      "model",                                       NULL,                                            FX_INVALID_ARGUMENT, "vocab"                       },
    {"dropout",                       "model/dropout",                               "0.1",                                           FX_UNIMPLEMENTED,    "dropout"                     },
    {"subword prefix",                "model/continuing_subword_prefix",             "\"##\"",                                        FX_UNIMPLEMENTED,
     "continuing_subword_prefix"                                                                                                                                                         },
    {"word suffix",                   "model/end_of_word_suffix",                    "\"</w>\"",                                      FX_UNIMPLEMENTED,    "end_of_word_suffix"          },
    {"no vocab",                      "model/vocab",                                 NULL,                                            FX_INVALID_ARGUMENT, "vocab"                       },
    {"a byte is missing",             "model/vocab/A",                               NULL,                                            FX_UNIMPLEMENTED,    "0x41"                        },
    {"negative id",                   "model/vocab/A",                               "-1",                                            FX_INVALID_ARGUMENT, "'A': bad id"                 },
    {"text id",                       "model/vocab/A",                               "\"1\"",                                         FX_INVALID_ARGUMENT, "'A': bad id"                 },
    {"huge id",                       "model/vocab/A",                               "1048576",                                       FX_INVALID_ARGUMENT, "'A': bad id"                 },
    {"an id twice",                   "model/vocab/A",                               "66",                                            FX_INVALID_ARGUMENT, "id 66"                       },
    {"no merges",                     "model/merges",                                NULL,                                            FX_INVALID_ARGUMENT, "merges"                      },
    {"merge of nothing",              "model/merges",                                "[\"ab\"]",                                      FX_INVALID_ARGUMENT, "merges[0]"                   },
    {"merge of three",                "model/merges",                                "[\"a b c\"]",                                   FX_INVALID_ARGUMENT, "merges[0]"                   },
    {"merge of numbers",              "model/merges",                                "[[1, 2]]",                                      FX_INVALID_ARGUMENT, "merges[0]"                   },
    {"merge array of three",          "model/merges",                                "[[\"a\",\"b\",\"c\"]]",                         FX_INVALID_ARGUMENT,
     "merges[0]"                                                                                                                                                                         },
    {"merge is a number",             "model/merges",                                "[1]",                                           FX_INVALID_ARGUMENT, "merges[0]"                   },
    {"merged token unknown",          "model/merges",                                "[\"a b\"]",                                     FX_INVALID_ARGUMENT, "'ab'"                        },
    {"merge part unknown",            "model/merges",                                "[\"a zz\"]",                                    FX_INVALID_ARGUMENT, "'zz'"                        },
    {"added tokens no array",         "added_tokens",                                "{}",                                            FX_INVALID_ARGUMENT, "added_tokens"                },
    {"added token no object",         "added_tokens/0",                              "7",                                             FX_INVALID_ARGUMENT, "added_tokens[0]"             },
    {"added token empty",             "added_tokens/0/content",                      "\"\"",                                          FX_INVALID_ARGUMENT, "added_tokens[0]"             },
    {"added token without id",        "added_tokens/1/id",                           NULL,                                            FX_INVALID_ARGUMENT, "<|eos|>"                     },
    {"added token's id taken",        "added_tokens/0/id",                           "65",                                            FX_INVALID_ARGUMENT, "id 65"                       },
    {"added token twice",             "added_tokens/1/content",                      "\"<|bos|>\"",                                   FX_INVALID_ARGUMENT, "twice"                       },
    {"added token in the vocabulary", "added_tokens/0/content",                      "\"A\"",                                         FX_INVALID_ARGUMENT,
     "another id"                                                                                                                                                                        },
    {"post-processor",                "post_processor/type",                         "\"RobertaProcessing\"",                         FX_UNIMPLEMENTED,
     "RobertaProcessing"                                                                                                                                                                 },
    {"two templates",                 "post_processor",
     "{\"type\":\"Sequence\",\"processors\":[{\"type\":\"BertProcessing\"}]}",                                                        FX_UNIMPLEMENTED,
     "BertProcessing"                                                                                                                                                                    },
    {"special token without ids",     "post_processor/special_tokens",               "{}",                                            FX_INVALID_ARGUMENT,
     "no ids"                                                                                                                                                                            },
    {"special id out of range",       "post_processor/special_tokens/<|bos|>/ids/0", "260",
     FX_INVALID_ARGUMENT,                                                                                                                                  "bad id"                      },
    {"no sequence",                   "post_processor/single",                       "[]",                                            FX_INVALID_ARGUMENT, "no Sequence"                 },
    {"unknown piece",                 "post_processor/single/0",                     "{\"Mystery\":{}}",                              FX_UNIMPLEMENTED,    "piece 0"                     },
};

static void set_path(json_t *root, const char *path, const char *value) {
    char part[64];
    json_t *at = root;
    for (;;) {
        size_t len = strcspn(path, "/");
        assert_true(len < sizeof part);
        memcpy(part, path, len);
        part[len] = 0;
        path += len;
        if (!*path++) break;
        at = json_is_array(at) ? json_array_get(at, strtoul(part, NULL, 10))
                               : json_object_get(at, part);
        assert_non_null(at);
    }
    json_t *set = value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
    if (json_is_array(at)) {
        assert_int_equal(json_array_set_new(at, strtoul(part, NULL, 10), set), 0);
    } else if (value) {
        assert_int_equal(json_object_set_new(at, part, set), 0);
    } else {
        assert_int_equal(json_object_del(at, part), 0);
    }
}

static void test_refused(void **state) {
    const struct row *row = *state;
    fx_error err = {0};
    fx_auto(json_t) spec = fixture_json(FX_MODEL_FOLDER "tokenizer.json");
    set_path(spec, row->path, row->value);
    fx_auto(fx_tokenizer) tokenizer = fixture_tokenizer(spec, NULL, &err);
    assert_null(tokenizer);
    if (!strstr(err.text, row->says)) fail_msg("'%s' lacks '%s'", err.text, row->says);
    assert_int_equal(err.code, row->code);
    assert_non_null(strstr(err.text, "tokenizer.json"));
}

FX_TEST_MAIN(test_refused, rows)
