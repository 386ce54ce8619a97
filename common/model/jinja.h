#pragma once
#include "common/model/template.h"

/* The interpreter behind template.h, private to it. Lexer -> tokens -> (one pass) code for a stack
 * machine -> run. Semantics are those of Jinja2 3.1; the tests compare the two. */

enum {
    FX_JINJA_ARGS_MAX = 5,     /* of a filter, test or method, without the value */
    FX_JINJA_INT_TEXT = 32,    /* bytes of a printed number */
    FX_JINJA_NESTING_MAX = 64, /* lists in mappings in lists ... that are printed or compared */
    FX_JINJA_RANGE_MAX = 100000,
    FX_JINJA_BYTES_STEP = 64, /* bytes copied or compared count as one more step */
};

enum fx_jinja_token_type {
    FX_JT_DATA,
    FX_JT_EXPRESSION, /* {{ */
    FX_JT_EXPRESSION_END,
    FX_JT_STATEMENT, /* {% */
    FX_JT_STATEMENT_END,
    FX_JT_NAME,
    FX_JT_STRING,
    FX_JT_INTEGER,
    FX_JT_FLOAT,
    FX_JT_OPERATOR,
    FX_JT_END,
};

/** An operator of one or two characters as a number. */
#define FX_JOP(first, second) ((uint16_t)((unsigned)(first) << 8 | (unsigned)(second)))

struct fx_jinja_token {
    enum fx_jinja_token_type type;
    uint16_t op; /* OPERATOR: FX_JOP('=', '='), FX_JOP(0, '+') ... */
    uint32_t line;
    fx_span text; /* DATA, NAME, and STRING with its escapes resolved: in the pool */
    union {
        int64_t integer;
        double real;
    };
};
struct fx_jinja_tokens {
    struct fx_jinja_token *at;
    size_t count, cap;
};

/** Lexes all of `source`; texts go to `pool`, which has room for source.len bytes. The last token
 *  is END. @own caller, free(tokens->at), also on failure */
FX_MUST bool fx_jinja__lex(fx_span source, uint8_t *pool, struct fx_jinja_tokens *tokens,
                           fx_error *err);

/** Text with an origin for each byte: NULL where all bytes share `user`. */
struct fx_jinja_text {
    const uint8_t *at;
    size_t len;
    const uint8_t *origin; /* [len], 1 = user's */
    bool user;
    bool markup; /* made by |safe: '+' escapes what is joined to it */
};

enum fx_jinja_kind {
    FX_JV_UNDEFINED, /* text: the name that has no value */
    FX_JV_NONE,
    FX_JV_BOOL,
    FX_JV_INT,
    FX_JV_FLOAT,
    FX_JV_TEXT,
    FX_JV_LIST,
    FX_JV_DICT,
    FX_JV_VIEW,   /* of a mapping's keys, values or items: a list without places */
    FX_JV_STREAM, /* what map() and its kin give: can be walked once, and is always true */
    FX_JV_LOOP,
    FX_JV_NAMESPACE,
    FX_JV_MACRO,
    FX_JV_FUNCTION, /* a built-in one */
    FX_JV_METHOD,   /* `x.items` without its call; also what names a filter, test or method */
    FX_JV_ABSENT,   /* an argument left out; never seen by a template */
};
struct fx_jinja_loop;
struct fx_jinja_stream;
struct fx_jinja_namespace;
struct fx_jinja_macro;
struct fx_jinja_callable;
struct fx_jinja_routine;
struct fx_jinja_value {
    enum fx_jinja_kind kind;
    union {
        bool boolean;
        int64_t integer;
        double real;
        struct fx_jinja_text text;
        struct {
            const struct fx_jinja_value *at; /* LIST: [count]; DICT: key, value, key, ... */
            size_t count;
            bool tuple;
        } list;
        struct fx_jinja_stream *stream;
        struct fx_jinja_loop *loop;
        struct fx_jinja_namespace *space;
        const struct fx_jinja_macro *macro;
        const struct fx_jinja_callable *callable;
        const struct fx_jinja_routine *function;
    };
};

/** What is left of a stream. */
struct fx_jinja_stream {
    const struct fx_jinja_value *at;
    size_t count;
};

/** One running {% for %}. */
struct fx_jinja_loop {
    struct fx_jinja_value items; /* a LIST */
    size_t index;
    uint32_t scope;              /* of its body */
    struct fx_jinja_value *kept; /* while a `for ... if` filters: what passed */
    size_t kept_count;
    const struct fx_jinja_value *changed; /* what loop.changed() saw last, NULL: nothing */
    size_t changed_count;
};

/** What operations need of the machine. */
struct fx_jinja_run {
    fx_arena *arena;
    fx_error *err;
    uint64_t steps; /* taken so far; costly operations add to them */
    int64_t now_s;  /* for strftime_now() */
    bool raised;    /* the error is the template's own */
};
#define fx_jinja__full(run)                                                                        \
    fx_fail((run)->err, FX_RESOURCE_EXHAUSTED, "chat template: arena is full")
#define fx_jinja__bad(run, ...) fx_fail((run)->err, FX_INVALID_ARGUMENT, __VA_ARGS__)

/** A filter, test or method: args[0] is the value, what was left out is ABSENT, and `count`
 *  (at least 1) goes to the last that is there. args[0..FX_JINJA_ARGS_MAX] can be read. */
typedef bool fx_jinja_function(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                               size_t count, struct fx_jinja_value *out);
enum { FX_JM_TEXT = 1, FX_JM_LIST = 2, FX_JM_DICT = 4, FX_JM_LOOP = 8 };
struct fx_jinja_callable {
    const char *name;
    size_t args_min, args_max;     /* without the value */
    const char *const *parameters; /* [args_max] keyword names, NULL: none may be named */
    fx_jinja_function *call;
    unsigned kinds; /* a method's objects: FX_JM_... */
};
/** A function: `args` are `count` by position, then `keywords` pairs of name and value. */
struct fx_jinja_routine {
    const char *name;
    bool (*call)(struct fx_jinja_run *run, const struct fx_jinja_value *args, size_t count,
                 size_t keywords, struct fx_jinja_value *out);
};

/* jinja_find.c */
enum fx_jinja_family { FX_JF_FILTER, FX_JF_TEST, FX_JF_METHOD };
/** NULL where there is none. */
const struct fx_jinja_callable *fx_jinja__find(enum fx_jinja_family family, fx_span name);
/** A method of that name that `object` has. */
const struct fx_jinja_callable *fx_jinja__method_of(const struct fx_jinja_value *object,
                                                    fx_span name);
/** Index of a keyword among the parameters, or args_max. */
size_t fx_jinja__parameter(const struct fx_jinja_callable *row, fx_span name);
/** Calls `row` on args[0] with `count` - 1 arguments by position and `keywords` pairs after them.
 */
FX_MUST bool fx_jinja__apply(struct fx_jinja_run *run, const struct fx_jinja_callable *row,
                             const struct fx_jinja_value *args, size_t count, size_t keywords,
                             struct fx_jinja_value *out);
/** Each ended by a row without a name. */
extern const struct fx_jinja_callable fx_jinja__text_filters[], fx_jinja__list_filters[],
    fx_jinja__pick_filters[], fx_jinja__number_filters[], fx_jinja__tests[],
    fx_jinja__text_methods[], fx_jinja__other_methods[];

/* jinja_builtin.c */
extern const struct fx_jinja_routine fx_jinja__builtins[];

/* jinja_space.c */
FX_MUST bool fx_jinja__space_new(struct fx_jinja_run *run, size_t cap,
                                 struct fx_jinja_namespace **out);
struct fx_jinja_value fx_jinja__space_get(const struct fx_jinja_namespace *space, fx_span name);
FX_MUST bool fx_jinja__space_set(struct fx_jinja_run *run, struct fx_jinja_namespace *space,
                                 const struct fx_jinja_value *name, struct fx_jinja_value value);
/** Refuses what Python can't hash: lists and mappings as keys. */
FX_MUST bool fx_jinja__want_key(struct fx_jinja_run *run, const struct fx_jinja_value *key);
/** A DICT of `count` pairs; a later pair of an equal key replaces the earlier value. */
FX_MUST bool fx_jinja__dict_new(struct fx_jinja_run *run, const struct fx_jinja_value *pairs,
                                size_t count, struct fx_jinja_value *out);

/* jinja_text.c */
FX_MUST bool fx_jinja__concat(struct fx_jinja_run *run, const struct fx_jinja_text *parts,
                              size_t count, struct fx_jinja_text *out);
/** HTML's & < > ' " escaped: what is markup is so already. The result is markup. */
FX_MUST bool fx_jinja__escape(struct fx_jinja_run *run, struct fx_jinja_text text,
                              struct fx_jinja_text *out);
/** a + b of strings. */
FX_MUST bool fx_jinja__add_texts(struct fx_jinja_run *run, struct fx_jinja_text a,
                                 struct fx_jinja_text b, struct fx_jinja_text *out);
/** What {{ value }} prints. */
FX_MUST bool fx_jinja__to_text(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                               struct fx_jinja_text *out);
struct fx_jinja_text fx_jinja__sub(struct fx_jinja_text text, size_t from, size_t to);
static inline fx_span fx_jinja__span(struct fx_jinja_text text) {
    return (fx_span){text.at, text.len};
}
static inline struct fx_jinja_text fx_jinja__literal(fx_span text) {
    return (struct fx_jinja_text){.at = text.at, .len = text.len};
}
/** The text of a double as Python prints it; returns its length. */
size_t fx_jinja__real(double value, char out[FX_JINJA_INT_TEXT]);

static inline struct fx_jinja_value fx_jinja__bool(bool value) {
    return (struct fx_jinja_value){.kind = FX_JV_BOOL, .boolean = value};
}
static inline struct fx_jinja_value fx_jinja__integer(int64_t value) {
    return (struct fx_jinja_value){.kind = FX_JV_INT, .integer = value};
}
static inline struct fx_jinja_value fx_jinja__text_value(struct fx_jinja_text text) {
    return (struct fx_jinja_value){.kind = FX_JV_TEXT, .text = text};
}
static inline struct fx_jinja_value fx_jinja__list(const struct fx_jinja_value *at, size_t count) {
    return (struct fx_jinja_value){
        .kind = FX_JV_LIST, .list = {at, count, false}
    };
}
/** UNDEFINED under this name. */
static inline struct fx_jinja_value fx_jinja__undefined(const char *name) {
    return (struct fx_jinja_value){.kind = FX_JV_UNDEFINED,
                                   .text = fx_jinja__literal(fx_span_str(name))};
}
/** An array of values in the arena; NULL, with the error set, when it is full. */
struct fx_jinja_value *fx_jinja__values(struct fx_jinja_run *run, size_t count);
/** For what takes text only: INVALID_ARGUMENT naming `what`. */
FX_MUST bool fx_jinja__want_text(struct fx_jinja_run *run, const char *what,
                                 const struct fx_jinja_value *value);
FX_MUST bool fx_jinja__want_integer(struct fx_jinja_run *run, const char *what,
                                    const struct fx_jinja_value *value, int64_t *out);

/* jinja_case.c */
/** Python's str.isprintable() of one character. */
bool fx_jinja__printable(uint32_t point);
enum fx_jinja_case { FX_JC_LOWER, FX_JC_UPPER, FX_JC_TITLE, FX_JC_CAPITALIZE };
/** As Python's str.lower() and so on. */
FX_MUST bool fx_jinja__case(struct fx_jinja_run *run, enum fx_jinja_case to,
                            struct fx_jinja_text text, struct fx_jinja_text *out);

/* jinja_utf8.c */
/** Bytes of the character at text.at[i]; a bad byte counts as one character. */
size_t fx_jinja__char_len(fx_span text, size_t i);
size_t fx_jinja__char_count(fx_span text);
/** Byte offset of character `index` (at most the count). */
size_t fx_jinja__char_at(fx_span text, size_t index);
/** Bytes of the whitespace (Python's str.isspace) at text.at[i], 0 if it is none. */
size_t fx_jinja__space_len(fx_span text, size_t i);
size_t fx_jinja__skip_space(fx_span text, size_t from);
/** Where text[from..) without its trailing whitespace ends. */
size_t fx_jinja__trim_end(fx_span text, size_t from);
/** The code point of the character of `len` bytes at text.at[i]. */
uint32_t fx_jinja__point(fx_span text, size_t i, size_t len);
/** Where `needle` next stands in text[from..), or text.len + 1. */
size_t fx_jinja__seek(fx_span text, size_t from, fx_span needle);
/** Writes a code point, returns its bytes; 0 for a surrogate or past U+10FFFF. */
size_t fx_jinja__put_char(uint32_t point, uint8_t out[4]);

/* jinja_value.c */
bool fx_jinja__truth(const struct fx_jinja_value *value);
bool fx_jinja__is_number(const struct fx_jinja_value *value);
const char *fx_jinja__kind_name(const struct fx_jinja_value *value);
FX_MUST bool fx_jinja__equal(struct fx_jinja_run *run, const struct fx_jinja_value *a,
                             const struct fx_jinja_value *b, bool *out);
/** < 0, 0, > 0: numbers with numbers, strings with strings (by code point), lists of those. */
FX_MUST bool fx_jinja__order(struct fx_jinja_run *run, const struct fx_jinja_value *a,
                             const struct fx_jinja_value *b, int *out);
enum { FX_JB_IN = 1, FX_JB_NOT_IN = 2 };
/** `op`: FX_JOP or FX_JB_. */
FX_MUST bool fx_jinja__binary(struct fx_jinja_run *run, int32_t op, const struct fx_jinja_value *a,
                              const struct fx_jinja_value *b, struct fx_jinja_value *out);
FX_MUST bool fx_jinja__negate(struct fx_jinja_run *run, bool minus, struct fx_jinja_value *value);

/* jinja_access.c */
FX_MUST bool fx_jinja__item(struct fx_jinja_run *run, const struct fx_jinja_value *object,
                            const struct fx_jinja_value *key, struct fx_jinja_value *out);
/** object.name: a method goes before an element of that name. */
FX_MUST bool fx_jinja__attribute(struct fx_jinja_run *run, const struct fx_jinja_value *object,
                                 const struct fx_jinja_value *name, struct fx_jinja_value *out);
/** parts: start, stop, step; NONE where left out. */
FX_MUST bool fx_jinja__slice(struct fx_jinja_run *run, const struct fx_jinja_value *object,
                             const struct fx_jinja_value parts[3], struct fx_jinja_value *out);
FX_MUST bool fx_jinja__stream(struct fx_jinja_run *run, const struct fx_jinja_value *items,
                              size_t count, struct fx_jinja_value *out);
/** A LIST of what a for loop over `value` sees; a stream is empty then. */
FX_MUST bool fx_jinja__iterate(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                               struct fx_jinja_value *out);

/* jinja_write.c */
struct fx_jinja_style {
    bool json;          /* else as Python's repr() */
    bool ascii, sorted; /* ensure_ascii, sort_keys */
    bool indented;
    struct fx_jinja_text indent;    /* of one level */
    struct fx_jinja_text item, key; /* separators */
};
/** The value as JSON or as Python prints it. */
FX_MUST bool fx_jinja__write(struct fx_jinja_run *run, const struct fx_jinja_style *style,
                             const struct fx_jinja_value *value, struct fx_jinja_text *out);
FX_MUST bool fx_jinja__repr(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                            struct fx_jinja_text *out);

/* jinja_output.c */
struct fx_jinja_piece {
    fx_span text;
    bool user;
    struct fx_jinja_piece *next;
};
struct fx_jinja_output {
    struct fx_jinja_piece *first, *last;
    size_t bytes;
};
FX_MUST bool fx_jinja__print(struct fx_jinja_run *run, struct fx_jinja_output *output,
                             struct fx_jinja_text text);
/** All of it as one text. */
FX_MUST bool fx_jinja__gather(struct fx_jinja_run *run, const struct fx_jinja_output *output,
                              struct fx_jinja_text *out);
FX_MUST bool fx_jinja__segments(struct fx_jinja_run *run, const struct fx_jinja_output *output,
                                struct fx_segments *out);
