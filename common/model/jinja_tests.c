#include "common/model/jinja.h"

/* {{ value is test }}; args[0] is the value. */

#define JINJA_TEST(name, expression)                                                               \
    static bool test_##name(struct fx_jinja_run *run, const struct fx_jinja_value *args,           \
                            size_t count, struct fx_jinja_value *out) {                            \
        const struct fx_jinja_value *value = &args[0];                                             \
        (void)run;                                                                                 \
        (void)count;                                                                               \
        bool yes = (expression);                                                                   \
        *out = (struct fx_jinja_value){.kind = FX_JV_BOOL, .boolean = yes};                        \
        return true;                                                                               \
    }

JINJA_TEST(defined, value->kind != FX_JV_UNDEFINED)
JINJA_TEST(undefined, value->kind == FX_JV_UNDEFINED)
JINJA_TEST(none, value->kind == FX_JV_NONE)
JINJA_TEST(string, value->kind == FX_JV_TEXT)
JINJA_TEST(number, fx_jinja__is_number(value))
JINJA_TEST(integer, value->kind == FX_JV_INT)
JINJA_TEST(float, value->kind == FX_JV_FLOAT)
JINJA_TEST(boolean, value->kind == FX_JV_BOOL)
JINJA_TEST(true, value->kind == FX_JV_BOOL && value->boolean)
JINJA_TEST(false, value->kind == FX_JV_BOOL && !value->boolean)
JINJA_TEST(mapping, value->kind == FX_JV_DICT)

/* Undefined has a length and can be iterated. */
static bool is_sequence(const struct fx_jinja_value *value) {
    return value->kind == FX_JV_LIST || value->kind == FX_JV_TEXT || value->kind == FX_JV_DICT ||
           value->kind == FX_JV_UNDEFINED;
}
JINJA_TEST(sequence, is_sequence(value))
JINJA_TEST(iterable, is_sequence(value) || value->kind == FX_JV_LOOP)

static FX_MUST bool rest(struct fx_jinja_run *run, const struct fx_jinja_value *a,
                         const struct fx_jinja_value *b, int64_t want, bool *out) {
    struct fx_jinja_value left, right = {.kind = FX_JV_INT, .integer = want};
    return fx_jinja__binary(run, '%', a, b, &left) && fx_jinja__equal(run, &left, &right, out);
}

static FX_MUST bool is_rest(struct fx_jinja_run *run, const struct fx_jinja_value *a, int64_t by,
                            int64_t want, struct fx_jinja_value *out) {
    struct fx_jinja_value divisor = {.kind = FX_JV_INT, .integer = by};
    bool yes;
    if (!rest(run, a, &divisor, want, &yes)) return false;
    *out = (struct fx_jinja_value){.kind = FX_JV_BOOL, .boolean = yes};
    return true;
}

static bool test_odd(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                     struct fx_jinja_value *out) {
    (void)count;
    return is_rest(run, &args[0], 2, 1, out);
}

static bool test_even(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                      struct fx_jinja_value *out) {
    (void)count;
    return is_rest(run, &args[0], 2, 0, out);
}

static bool test_divisibleby(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                             size_t count, struct fx_jinja_value *out) {
    bool yes;
    (void)count;
    if (!rest(run, &args[0], &args[1], 0, &yes)) return false;
    *out = (struct fx_jinja_value){.kind = FX_JV_BOOL, .boolean = yes};
    return true;
}

static bool test_equalto(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                         struct fx_jinja_value *out) {
    (void)count;
    return fx_jinja__binary(run, FX_JOP('=', '='), &args[0], &args[1], out);
}

static bool test_ne(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                    struct fx_jinja_value *out) {
    (void)count;
    return fx_jinja__binary(run, FX_JOP('!', '='), &args[0], &args[1], out);
}

static bool test_in(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                    struct fx_jinja_value *out) {
    (void)count;
    return fx_jinja__binary(run, FX_JB_IN, &args[0], &args[1], out);
}

const struct fx_jinja_callable fx_jinja__tests[] = {
    {"defined",     0, 0, NULL, test_defined    },
    {"undefined",   0, 0, NULL, test_undefined  },
    {"none",        0, 0, NULL, test_none       },
    {"string",      0, 0, NULL, test_string     },
    {"number",      0, 0, NULL, test_number     },
    {"integer",     0, 0, NULL, test_integer    },
    {"float",       0, 0, NULL, test_float      },
    {"boolean",     0, 0, NULL, test_boolean    },
    {"true",        0, 0, NULL, test_true       },
    {"false",       0, 0, NULL, test_false      },
    {"mapping",     0, 0, NULL, test_mapping    },
    {"sequence",    0, 0, NULL, test_sequence   },
    {"iterable",    0, 0, NULL, test_iterable   },
    {"odd",         0, 0, NULL, test_odd        },
    {"even",        0, 0, NULL, test_even       },
    {"divisibleby", 1, 1, NULL, test_divisibleby},
    {"equalto",     1, 1, NULL, test_equalto    },
    {"eq",          1, 1, NULL, test_equalto    },
    {"ne",          1, 1, NULL, test_ne         },
    {"in",          1, 1, NULL, test_in         },
    {NULL,          0, 0, NULL, NULL            },
};
