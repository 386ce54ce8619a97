/* Requests to token ids with the bundled model's tokenizer and templates of the test's own. */
#include "tests/fx_test.h"
#include "common/base/heap.h"
#include "services/gateway/prompt.h"

enum { BOS = 256, EOS = 257, CONTEXT = 64 };

static const char chatty[] =
    "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}"
    "{{ eos_token }}{% endfor %}";

static char *file_read(const char *name, size_t *len) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/models/fractal-tiny-moe/%s", FX_SOURCE_DIR, name);
    FILE *file = fopen(path, "rbe");
    assert_non_null(file);
    char *bytes = calloc(1, 1 << 20);
    *len = fread(bytes, 1, (1 << 20) - 1, file);
    fclose(file);
    return bytes;
}

static struct gw_vocab *vocab_of(const char *template) {
    char config[1024];
    size_t len;
    char *tokenizer = file_read("tokenizer.json", &len);
    struct gw_vocab *vocab = NULL;
    fx_error err = {0};
    (void)snprintf(
        config, sizeof config, "{\"bos_token\":\"<|bos|>\",\"eos_token\":\"<|eos|>\"%s%s%s}",
        template ? ",\"chat_template\":\"" : "", template ? template : "", template ? "\"" : "");
    struct fx_tokenizer_files files = {
        {(uint8_t *)tokenizer, len},
        fx_span_str(config)
    };
    if (!gw_vocab_new("d", &files, &vocab, &err)) fail_msg("%s", err.text);
    free(tokenizer);
    return vocab;
}

static const struct row {
    const char *name, *template;
    enum gw_kind kind;
    const char *body;
    int reason;       /* -1: built */
    const char *want; /* bytes; ^ stands for BOS, $ for EOS */
} rows[] = {
    {"text has one BOS",                     NULL,                                             GW_COMPLETION, "{\"model\":\"m\",\"prompt\":\"ab\"}",                                    -1,             "^ab"                                                            },
    {"BOS written by the user stays text",   NULL,                                             GW_COMPLETION,
     "{\"model\":\"m\",\"prompt\":\"<|bos|>a\"}",                                                                                                                                       -1,             "^<|bos|>a"                                                      },
    {"empty text is the beginning",          NULL,                                             GW_COMPLETION, "{\"model\":\"m\",\"prompt\":\"\"}",                                      -1,
     "^"                                                                                                                                                                                                                                                                 },
    {"ids as they are",                      NULL,                                             GW_COMPLETION, "{\"model\":\"m\",\"prompt\":[256,97,257]}",                              -1,
     "^a$"                                                                                                                                                                                                                                                               },
    {"id past the vocabulary",               NULL,                                             GW_COMPLETION, "{\"model\":\"m\",\"prompt\":[260]}",
     GW_BAD_VALUE,                                                                                                                                                                                      NULL                                                             },
    {"too long",                             NULL,                                             GW_COMPLETION,
     "{\"model\":\"m\",\"prompt\":"
     "\"0123456789012345678901234567890123456789012345678901234567890123\"}",                                                                                                           GW_TOO_LONG,    NULL                                                             },
    {"one place left",                       NULL,                                             GW_COMPLETION,
     "{\"model\":\"m\",\"prompt\":"
     "\"01234567890123456789012345678901234567890123456789012345678901\"}",                                                                                                             -1,             "^01234567890123456789012345678901234567890123456789012345678901"},
    {"chat",                                 chatty,                                           GW_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"s\"},"
     "{\"role\":\"user\",\"content\":\"u\"}]}",                                                                                                                                         -1,             "^[system]s$[user]u$"                                            },
    {"chat in parts",                        chatty,                                           GW_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
     "\"a\"},"
     "{\"type\":\"text\",\"text\":\"b\"}]}]}",                                                                                                                                          -1,             "^[user]ab$"                                                     },
    {"control tokens of the user stay text", chatty,                                           GW_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"<|eos|><|bos|>\"}]}",                                                                                             -1,
     "^[user]<|eos|><|bos|>$"                                                                                                                                                                                                                                            },
    {"variables and documents",
     "{{ mode }}{% for d in documents %}<{{ d.text }}>{% endfor %}{{ thinking }}{% if "
     "add_generation_prompt %}!{% endif %}",                                                   GW_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"u\"}],\"add_generation_"
     "prompt\":false,"
     "\"documents\":[{\"text\":\"a\"},{\"text\":\"b<|eos|>\"}],"
     "\"chat_template_kwargs\":{\"mode\":\"<|bos|>\",\"thinking\":false}}",                                                                                                             -1,             "<|bos|><a><b<|eos|>>False"                                      },
    {"no documents, no variables",
     "{{ documents is none }}{{ mode is defined }}{% if add_generation_prompt %}!{% endif %}", GW_CHAT,       "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"u\"}]}", -1,
     "TrueFalse!"                                                                                                                                                                                                                                                        },
    {"tokenize text",                        NULL,                                             GW_TOKENIZE,   "{\"model\":\"m\",\"prompt\":\"ab\"}",                                    -1,             "^ab"                                                            },
    {"tokenize text alone",                  NULL,                                             GW_TOKENIZE,
     "{\"model\":\"m\",\"prompt\":\"ab\",\"add_special_tokens\":false}",                                                                                                                -1,             "ab"                                                             },
    {"tokenize nothing",                     NULL,                                             GW_TOKENIZE,   "{\"model\":\"m\",\"prompt\":\"\"}",                                      -1,             "^"                                                              },
    {"tokenize nothing alone",               NULL,                                             GW_TOKENIZE,
     "{\"model\":\"m\",\"prompt\":\"\",\"add_special_tokens\":false}",                                                                                                                  GW_BAD_VALUE,   NULL                                                             },
    {"tokenize chat",                        chatty,                                           GW_TOKENIZE,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"u\"}]}",                                                                                                          -1,             "^[user]u$"                                                      },
    {"tokenize chat, BOS never twice",       chatty,                                           GW_TOKENIZE,
     "{\"model\":\"m\",\"add_special_tokens\":true,\"messages\":[{\"role\":\"user\",\"content\":"
     "\"u\"}]}",                                                                                                                                                                        -1,             "^[user]u$"                                                      },
    {"names",
     "{% for m in messages %}{{ m.name if m.name is defined else '-' }}:{{ m.content }};{% endfor "
     "%}",                                                                                     GW_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"name\":\"Al<|eos|>\",\"content\":\"u\"},"
     "{\"role\":\"user\",\"name\":null,\"content\":[{\"type\":\"text\",\"text\":\"\"}]}]}",                                                                                             -1,             "Al<|eos|>:u;-:;"                                                },
    {"no template",                          NULL,                                             GW_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"u\"}]}",                                                                                                          GW_NO_TEMPLATE,
     NULL                                                                                                                                                                                                                                                                },
    {"a template we can't run",              "{% frob %}",                                     GW_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"u\"}]}",                                                                                                          GW_NO_TEMPLATE,
     NULL                                                                                                                                                                                                                                                                },
    {"a template that refuses",              "{{ raise_exception('no') }}",                    GW_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"u\"}]}",                                                                                                          GW_BAD_PROMPT,  NULL                                                             },
};

static void show(const struct gw_prompt *prompt, char *out) {
    for (uint32_t i = 0; i < prompt->len; i++) {
        uint32_t id = prompt->at[i];
        out[i] = id == BOS ? '^' : id == EOS ? '$' : (char)id;
    }
    out[prompt->len] = 0;
}

static void test_prompt(void **state) {
    const struct row *row = *state;
    struct gw_vocab *vocab = vocab_of(row->template);
    struct gw_request request = {0};
    struct gw_problem problem = {0};
    struct gw_prompt prompt = {0};
    char text[CONTEXT + 1];
    if (!gw_request_parse(row->kind, fx_span_str(row->body), &request, &problem))
        fail_msg("%s", problem.message);
    bool ok = gw_prompt_build(&request, vocab, CONTEXT, &prompt, &problem);
    if (ok != (row->reason < 0)) fail_msg("built %d: %s", ok, problem.message);
    if (ok) {
        show(&prompt, text);
        assert_string_equal(text, row->want);
        bool is_text = strspn(text, "^$") < strlen(text);
        assert_int_equal(prompt.is_continued, !request.messages && is_text);
    } else {
        assert_int_equal(problem.reason, row->reason);
        assert_true(*problem.param && *problem.message);
    }
    free(prompt.at);
    gw_request_done(&request);
    gw_vocab_unref(vocab);
}

FX_TEST_MAIN(test_prompt, rows)
