/* Origins of text through every operation, roles, and the named limits. */
#include "tests/unit/model/text_fixture.h"
#include "common/model/template.h"

enum { ARENA_BYTES = 64 << 20 };

static uint8_t *memory_;

/* Renders with one user message; prints user text in brackets. */
static bool render(const char *source, const char *content, size_t arena_bytes, char *out,
                   size_t cap, fx_error *err) {
    fx_auto(fx_template) template = NULL;
    struct fx_message message = {fx_span_str("user"), fx_span_str(content)};
    struct fx_template_input input = {.messages = &message, .count = 1};
    struct fx_segments got;
    fx_arena arena;
    size_t len = 0;
    if (!fx_template_compile(fx_span_str(source), &template, err)) fail_msg("%s", err->text);
    fx_arena_init(&arena, memory_, arena_bytes);
    bool ok = fx_template_render(template, &input, &arena, &got, err);
    for (size_t i = 0; ok && i < got.count; i++) {
        fx_span text = got.at[i].text;
        len += (size_t)snprintf(out + len, cap - len, got.at[i].is_template ? "%.*s" : "[%.*s]",
                                (int)text.len, (const char *)text.at);
        assert_true(len < cap);
    }
    fx_arena_done(&arena);
    return ok;
}

static void test_origin(void **state) {
    static const struct {
        const char *source, *content, *want;
    } rows[] = {
        {"a{{ messages[0].content }}b",                                                           "U",              "a[U]b"                                        },
        {"{{ messages[0].role }}{{ messages[0].content }}",                                       "U",              "user[U]"                                      },
        {"{{ '<' + messages[0]['content'] + '>' }}",                                              "U",              "<[U]>"                                        },
        {"{{ '<' ~ messages[0].content ~ '>' ~ messages[0].content }}",                           "U",              "<[U]>[U]"                                     },
        {"{{ ('a' + messages[0].content + 'b') * 2 }}",                                           "U",              "a[U]ba[U]b"                                   },
        {"{{ ('ab' + messages[0].content + 'cd')[1:5] }}",                                        "UV",             "b[UV]c"                                       },
        {"{{ ('ab' + messages[0].content + 'cd')[::-1] }}",                                       "UV",             "dc[VU]ba"                                     },
        {"{{ ('ab' + messages[0].content)[2] }}",                                                 "UV",             "[U]"                                          },
        {"{{ (' ' + messages[0].content + ' ')|trim }}x",                                         " U ",            "[U]x"                                         },
        {"{{ (' ' + messages[0].content + ' c ').strip() }}",                                     " U ",            "[U ] c"                                       },
        {"{{ ('a' + messages[0].content)|upper }}",                                               "u",              "A[U]"                                         },
        {"{{ ('A' + messages[0].content).lower() }}",                                             "U",              "a[u]"                                         },
        {"{{ ['a', messages[0].content, 'b']|join(', ') }}",                                      "U",              "a, [U], b"                                    },
        {"{{ ['a', 'b']|join(messages[0].content) }}",                                            "U",              "a[U]b"                                        },
        {"{{ messages[0]|tojson }}",                                                              "U\n",            "{\"role\": \"user\", \"content\": \"[U\\n]\"}"},
        {"{{ messages[0].content|default('x') }}",                                                "U",              "[U]"                                          },
        {"{% for c in 'a' + messages[0].content %}{{ c }}.{% endfor %}",                          "UV",             "a.[U].[V]."                                   },
        {"{% set x = messages[0].content %}{{ x }}{{ x }}",                                       "U",              "[UU]"                                         },
        {"{{ messages[0].content|first }}{{ messages[0].content|last }}",                         "UV",             "[UV]"                                         },
        {"{{ messages[0].content|length }}",                                                      "UV",             "2"                                            },
        {"{{ messages[0].content if true else 'x' }}{{ '' or messages[0].content }}",             "U",              "[UU]"                                         },
        {"{{ ('a' ~ messages[0].content)|replace('a', 'b')|title|capitalize }}",                  "uA",             "B[ua]"                                        },
        {"{{ 'x-y'.replace('-', messages[0].content) }}",                                         "U",              "x[U]y"                                        },
        {"{{ ('a,' ~ messages[0].content ~ ',b').split(',')|join('+') }}",                        "U,V",            "a+[U]+[V]+b"                                  },
        {"{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(messages[0].content)|upper }}",             "u",              "<[U]>"                                        },
        {"{% set x %}<{{ messages[0].content }}>{% endset %}{{ x|trim }}",                        "U",              "<[U]>"                                        },
        {"{% filter upper %}<{{ messages[0].content }}>{% endfilter %}",                          "u",              "<[U]>"                                        },
        {"{% set ns = namespace(t='<') %}{% set ns.t = ns.t + messages[0].content %}{{ ns.t }}>",
         "U",                                                                                                       "<[U]>"                                        },
        {"{{ {'k': [messages[0].content]} }}",                                                    "U'",             "{'k': [\"[U']\"]}"                            },
        {"{{ messages|map(attribute='content')|join('|') }}",                                     "U",              "[U]"                                          },
        {"{{ '<'|safe + messages[0].content }}",                                                  "<",              "<[&lt;]"                                      },
        {"{{ messages[0].content|indent(1, true) }}",                                             "U\nV",           " [U]\n [V]"                                   },
        {"{{ ('x\n' ~ messages[0].content)|string|list|join }}",                                  "U",              "x\n[U]"                                       },
        {"{{ strftime_now(messages[0].content) }}",                                               "%%",             "[%]"                                          },
        {"{{ (messages[0].content ~ 'ß')|upper }}",                                              "ß",             "[SS]SS"                                       },
        {"{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}",                     "U",
         "role=user;content=[U];"                                                                                                                                  },
        {"{{ messages[0].content }}",                                                             "",               ""                                             },
        {"a{{ messages[0].content }}b",                                                           "",               "ab"                                           },
        {"{{ messages[0].content }}",                                                             "{{ 1 }}{% x %}", "[{{ 1 }}{% x %}]"                             },
    };
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        char out[128] = "";
        fx_error err = {0};
        if (!render(rows[i].source, rows[i].content, ARENA_BYTES, out, sizeof out, &err))
            fail_msg("%s: %s", rows[i].source, err.text);
        if (strcmp(out, rows[i].want) != 0)
            fail_msg("%s: got '%s', want '%s'", rows[i].source, out, rows[i].want);
    }
}

static void test_roles(void **state) {
    static const struct {
        const char *role;
        bool ok;
    } rows[] = {
        {"system",    true },
        {"developer", true },
        {"user",      true },
        {"assistant", true },
        {"tool",      true },
        {"function",  true },
        {"",          false},
        {"users",     false},
        {"User",      false},
        {"use",       false},
        {"eos|>",     false},
        {"user ",     false}
    };
    (void)state;
    fx_auto(fx_template) template = NULL;
    fx_error err = {0};
    assert_true(fx_template_compile(fx_span_str("x"), &template, &err));
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        struct fx_message message = {fx_span_str(rows[i].role), fx_span_str("hi")};
        struct fx_template_input input = {.messages = &message, .count = 1};
        struct fx_segments got;
        fx_arena arena;
        fx_arena_init(&arena, memory_, ARENA_BYTES);
        bool ok = fx_template_render(template, &input, &arena, &got, &err);
        fx_arena_done(&arena);
        assert_true(ok == rows[i].ok);
        if (!ok) assert_int_equal(err.code, FX_INVALID_ARGUMENT);
        if (!ok) assert_non_null(strstr(err.text, "messages[0]: role"));
    }
}

/* What transformers leaves undefined for a model without such a token. */
static void test_no_tokens(void **state) {
    char out[64] = "";
    fx_error err = {0};
    (void)state;
    assert_true(render("{{ bos_token is defined }}[{{ eos_token }}]", "", ARENA_BYTES, out,
                       sizeof out, &err));
    assert_string_equal(out, "False[]");
}

static void test_render_fails(void **state) {
    static const struct {
        const char *source, *says;
        enum fx_code code;
    } rows[] = {
  /* 160 * 160 * 160 rounds */
        {"{% set t = 'x' * 160 %}{% for a in t %}{% for b in t %}{% for c in t %}{% set d = 1 %}"
         "{% endfor %}{% endfor %}{% endfor %}",                                        "steps",                                        FX_RESOURCE_EXHAUSTED},
        {"{% set t = 'x' * 1000000 %}{% for a in 'abcdefghi' %}{{ t }}{% endfor %}",
         "more than 8388608 bytes",                                                                                                              FX_RESOURCE_EXHAUSTED},
        {"{{ 'xxxxxxxxxx' * 1000000000 }}",                                                      "too long",                                     FX_RESOURCE_EXHAUSTED},
        {"{% set t = 'x' * 8000000 %}{% set t = t ~ t %}{% set t = t ~ t %}{% set t = t ~ t %}",
         "arena is full",                                                                                                                        FX_RESOURCE_EXHAUSTED},
        {"{{ 999999999999999999 * 999999999999999999 }}",                                        "integer overflow",                             FX_INVALID_ARGUMENT  },
        {"{{ 'a%s' % 1 }}",                                                                      "string formatting with % is not supported",    FX_INVALID_ARGUMENT  },
        {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",                                      "macros call each other",
         FX_RESOURCE_EXHAUSTED                                                                                                                                        },
        {"{{ [1, 2] * 100000 }}",                                                                "too long",                                     FX_RESOURCE_EXHAUSTED},
        {"{% set t = 'ab' * 20000 %}{{ t|replace('a', 'x' * 500) }}",                            "too long",
         FX_RESOURCE_EXHAUSTED                                                                                                                                        },
        {"{% set t = range(50000)|list %}{{ t|unique|list|length }}",                            "steps",
         FX_RESOURCE_EXHAUSTED                                                                                                                                        },
        {"{% set t = 'x' * 4000000 %}{% for i in range(100) %}{% if 'y' in t %}{% endif %}{% "
         "endfor %}",                                                                   "steps",                                        FX_RESOURCE_EXHAUSTED},
        {"{% set ns = namespace(t='') %}{% for i in range(90000) %}{% set ns.t = ns.t ~ "
         "'xxxxxxxxxx' %}{% endfor %}",                                                 "arena is full",                                FX_RESOURCE_EXHAUSTED},
        {"{% set ns = namespace(t=[]) %}{% for i in range(99) %}{% set ns.t = [ns.t] %}{% endfor "
         "%}{{ ns.t }}",                                                                "nested deeper than 64",                        FX_INVALID_ARGUMENT  },
        {"{% set ns = namespace(t=[], u=[]) %}{% for i in range(99) %}{% set ns.t = [ns.t] %}{% "
         "set ns.u = [ns.u] %}{% endfor %}{{ ns.t == ns.u }}",                          "nested deeper than 64",                        FX_INVALID_ARGUMENT  },
        {"{{ 10 ** 19 }}",                                                                       "integer overflow",                             FX_INVALID_ARGUMENT  },
        {"{{ [1]|map('map', 'upper')|list }}",                                                   "inside of another is not supported",
         FX_INVALID_ARGUMENT                                                                                                                                          },
        {"\n{{ range }}",                                                                        "line 2: printing a function is not supported", FX_INVALID_ARGUMENT  },
        {"{{ [1]|select }}",                                                                     "printing a generator is not supported",        FX_INVALID_ARGUMENT  },
        {"{% macro f() %}\n\n{{ 1 + 'a' }}{% endmacro %}{{ f() }}",
         "line 3: '+' of integer and string",                                                                                                    FX_INVALID_ARGUMENT  },
        {"{{ 1 + 'a' }}",                                                                        "line 1: '+' of integer and string",            FX_INVALID_ARGUMENT  },
        {"{{ -x }}",                                                                             "'x' is undefined",                             FX_INVALID_ARGUMENT  },
        {"{{ messages[0].name.x }}",                                                             "'name' is undefined",                          FX_INVALID_ARGUMENT  },
    };
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        char out[64];
        fx_error err = {0};
        if (render(rows[i].source, "", ARENA_BYTES, out, sizeof out, &err))
            fail_msg("%s: rendered", rows[i].source);
        if (!strstr(err.text, rows[i].says)) fail_msg("'%s' lacks '%s'", err.text, rows[i].says);
        assert_int_equal(err.code, rows[i].code);
    }
}

/* An arena of any size gives the text or RESOURCE_EXHAUSTED, never something else. */
static void test_small_arenas(void **state) {
    static const char source[] =
        "{% for m in messages if m.role == 'user' %}{{ ['<', m.content|trim, m.content[::2]]"
        "|join('|') }}{{ m|tojson }}{{ m.content * 2 }}{% for c in m.content %}{{ c ~ 1 }}"
        "{% endfor %}{{ 1.5 }}{% endfor %}";
    bool done = false;
    (void)state;
    for (size_t bytes = 0; !done; bytes += 16) {
        char out[256] = "";
        fx_error err = {0};
        assert_true(bytes < (1 << 20));
        done = render(source, " UVW", bytes, out, sizeof out, &err);
        if (!done) assert_int_equal(err.code, FX_RESOURCE_EXHAUSTED);
        if (done) assert_non_null(strstr(out, "<|[UVW]|[ V]"));
    }
}

static void nest(char *out, size_t cap, const char *open, const char *middle, const char *close,
                 size_t times) {
    fx_buf buf = {(uint8_t *)out, 0, cap};
    for (size_t i = 0; i < times; i++)
        fx_buf_put(&buf, fx_span_str(open));
    fx_buf_put(&buf, fx_span_str(middle));
    for (size_t i = 0; i < times; i++)
        fx_buf_put(&buf, fx_span_str(close));
    fx_buf_put(&buf, (fx_span){(const uint8_t *)"", 1});
    assert_true(fx_buf_fits(&buf));
}

static void test_depth(void **state) {
    static const struct {
        const char *open, *middle, *close;
        size_t times;
        const char *says; /* NULL: compiles */
    } rows[] = {
        {"{% if 1 %}",         "x", "{% endif %}",  FX_TEMPLATE_DEPTH_MAX,     NULL                      },
        {"{% if 1 %}",         "x", "{% endif %}",  FX_TEMPLATE_DEPTH_MAX + 1, "blocks nested deeper"    },
        {"{% for a in 'x' %}", "y", "{% endfor %}", FX_TEMPLATE_DEPTH_MAX,     NULL                      },
        {"{{ ",                "1", " }}",          1,                         NULL                      },
        {"(",                  "1", ")",            FX_TEMPLATE_DEPTH_MAX - 1, NULL                      },
        {"(",                  "1", ")",            FX_TEMPLATE_DEPTH_MAX,     "expression nested deeper"},
        {"[",                  "1", "]|length",     5000,                      "expression nested deeper"},
        {"x|default(",         "1", ")",            5000,                      "expression nested deeper"},
        {"- ",                 "1", "",             5000,                      "expression nested deeper"},
        {"not ",               "1", "",             5000,                      NULL                      },
        {"1 if 0 else ",       "1", "",             5000,                      "expression nested deeper"},
    };
    static char inner[1 << 17], source[1 << 17];
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        char out[128];
        fx_error err = {0};
        fx_auto(fx_template) template = NULL;
        bool whole = rows[i].open[0] == '{';
        nest(inner, sizeof inner, rows[i].open, rows[i].middle, rows[i].close, rows[i].times);
        if (whole)
            nest(source, sizeof source, "", inner, "", 1);
        else
            nest(source, sizeof source, "{{ ", inner, " }}", 1);
        bool ok = fx_template_compile(fx_span_str(source), &template, &err);
        if (ok != (rows[i].says == NULL)) fail_msg("%s: %s", rows[i].open, err.text);
        if (!ok && !strstr(err.text, rows[i].says)) fail_msg("'%s'", err.text);
        if (ok) assert_true(render(source, "", ARENA_BYTES, out, sizeof out, &err));
    }
}

static void test_sizes(void **state) {
    fx_error err = {0};
    fx_auto(fx_template) template = NULL;
    (void)state;
    fx_auto(uint8_t) text = fx_alloc(FX_TEMPLATE_SOURCE_BYTES_MAX + 1, 1);
    memset(text, 'x', FX_TEMPLATE_SOURCE_BYTES_MAX + 1);
    assert_false(
        fx_template_compile((fx_span){text, FX_TEMPLATE_SOURCE_BYTES_MAX + 1}, &template, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    assert_true(
        fx_template_compile((fx_span){text, FX_TEMPLATE_SOURCE_BYTES_MAX}, &template, &err));
    static struct fx_message messages[FX_TEMPLATE_MESSAGES_MAX + 1];
    for (size_t i = 0; i < FX_TEST_COUNT(messages); i++)
        messages[i].role = fx_span_str("user");
    struct fx_template_input input = {.messages = messages, .count = FX_TEMPLATE_MESSAGES_MAX + 1};
    struct fx_segments got;
    fx_arena arena;
    fx_arena_init(&arena, memory_, ARENA_BYTES);
    assert_false(fx_template_render(template, &input, &arena, &got, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    input.count--;
    assert_true(fx_template_render(template, &input, &arena, &got, &err));
    fx_arena_done(&arena);
}

static const char *const parts[] = {
    "{{ ",
    " }}",
    "{% ",
    " %}",
    "{#",
    "#}",
    "if ",
    "else",
    "elif ",
    "endif",
    "for x in ",
    "endfor",
    "set x = ",
    "messages",
    "[0]",
    ".content",
    "|trim",
    "|join('-')",
    "'a'",
    "1",
    " + ",
    " ~ ",
    "(",
    ")",
    "[",
    "]",
    ":",
    "-",
    "macro f(x) ",
    "endmacro",
    "f(1)",
    "set x ",
    "endset",
    "namespace(a=1)",
    "ns.a",
    "{",
    "}",
    ".items()",
    "|map('upper')",
    "|select",
    "|list",
    "|tojson(2)",
    "|sort",
    "**",
    " < ",
    "with ",
    "endwith",
    "range(3)",
    "set ns.a = ",
    "|items",
    ", y",
    ".split()",
    "filter upper",
    "endfilter",
    " is defined",
    " in ",
    " not ",
    "loop.index",
    "break",
    "\n",
    "  ",
    "é",
    "\\",
    "'",
    "\"",
    ",",
    "{%- ",
    " -%}",
    "x",
    "|default(",
    "==",
};

/* Pieces of templates in random order: refused or rendered, within bounds (ASan watches). */
static void test_random(void **state) {
    uint64_t seed = 88172645463325252U;
    size_t compiled = 0;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        char source[512] = "{{ x }}";
        fx_buf buf = {(uint8_t *)source, 0, sizeof source - 1};
        for (uint64_t n = 1 + (seed >> 20) % 12; n > 0; n--) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            fx_buf_put(&buf, fx_span_str(parts[(seed >> 32) % FX_TEST_COUNT(parts)]));
        }
        fx_error err = {0};
        fx_auto(fx_template) template = NULL;
        if (!fx_template_compile((fx_span){buf.at, buf.len}, &template, &err)) continue;
        compiled++;
        struct fx_message message = {fx_span_str("user"), fx_span_str("héy")};
        struct fx_template_input input = {.messages = &message, .count = 1};
        struct fx_segments got;
        fx_arena arena;
        fx_arena_init(&arena, memory_, 1 << 20);
        if (!fx_template_render(template, &input, &arena, &got, &err))
            assert_int_not_equal(err.code, FX_OK);
        fx_arena_done(&arena);
    }
    assert_true(compiled > 500);
}

static int setup(void **state) {
    (void)state;
    memory_ = fx_alloc(ARENA_BYTES, 1);
    return memory_ ? 0 : 1;
}

static int teardown(void **state) {
    (void)state;
    free(memory_);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_origin),       cmocka_unit_test(test_roles),
        cmocka_unit_test(test_no_tokens),    cmocka_unit_test(test_render_fails),
        cmocka_unit_test(test_small_arenas), cmocka_unit_test(test_depth),
        cmocka_unit_test(test_sizes),        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
