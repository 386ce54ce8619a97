/* tokenizer_config.json beside a good tokenizer.json, and bytes that are no JSON. */
#include "tests/unit/model/text_fixture.h"

struct row {
    const char *name, *config, *says; /* says NULL: accepted */
    const char *template_source;      /* wanted chat template */
};

static const struct row rows[] = {
    {"empty",                    "",                                                               NULL,                ""        },
    {"no tokens",                "{}",                                                             NULL,                ""        },
    {"null tokens",              "{\"bos_token\":null,\"eos_token\":null}",                        NULL,                ""        },
    {"template",                 "{\"chat_template\":\"x{{ 1 }}\"}",                               NULL,                "x{{ 1 }}"},
    {"named templates",
     "{\"chat_template\":[{\"name\":\"rag\",\"template\":\"r\"},"
     "{\"name\":\"default\",\"template\":\"d\"}]}",                                                NULL,                "d"       },
    {"no default template",      "{\"chat_template\":[{\"name\":\"rag\",\"template\":\"r\"}]}",    NULL,
     ""                                                                                                                           },
    {"template of another type", "{\"chat_template\":7}",                                          NULL,                ""        },
    {"known added token",        "{\"added_tokens_decoder\":{\"256\":{\"content\":\"<|bos|>\"}}}", NULL,
     ""                                                                                                                           },
    {"unknown added token",      "{\"added_tokens_decoder\":{\"300\":{\"content\":\"<new>\"}}}",
     "token 300",                                                                                                       NULL      },
    {"unknown bos",              "{\"bos_token\":\"<s>\"}",                                        "bos_token '<s>'",   NULL      },
    {"unknown eos",              "{\"eos_token\":{\"content\":\"</s>\"}}",                         "eos_token '</s>'",  NULL      },
    {"not JSON",                 "{",                                                              "line 1",            NULL      },
    {"an array",                 "[]",                                                             "not a JSON object", NULL      },
};

static void test_config(void **state) {
    const struct row *row = *state;
    fx_error err = {0};
    fx_auto(json_t) spec = fixture_json(FX_MODEL_FOLDER "tokenizer.json");
    fx_auto(fx_tokenizer) tokenizer = fixture_tokenizer(spec, row->config, &err);
    if (row->says) {
        assert_null(tokenizer);
        if (!strstr(err.text, row->says)) fail_msg("'%s' lacks '%s'", err.text, row->says);
        assert_non_null(strstr(err.text, "tokenizer_config.json"));
        return;
    }
    if (!tokenizer) fail_msg("%s", err.text);
    fx_span source = fx_tokenizer_chat_template(tokenizer);
    assert_true(fx_span_eq_str(source, row->template_source));
}

FX_TEST_MAIN(test_config, rows)
