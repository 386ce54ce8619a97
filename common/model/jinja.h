#pragma once
#include "common/model/template.h"

/* The interpreter behind template.h, private to it. Lexer -> tokens -> (one pass) code for a stack
 * machine -> run. Semantics are those of Jinja2 3.1; the tests compare the two. */

enum {
    FX_JINJA_CODE_MAX = 65536,
    FX_JINJA_NAMES_MAX = 256,
    FX_JINJA_STACK_MAX = 256, /* operands, so also elements of a list literal */
    FX_JINJA_ARGS_MAX = 3,
    FX_JINJA_INT_TEXT = 32, /* bytes of a printed number */
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
    FX_JV_LOOP,
};
struct fx_jinja_loop;
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
        } list;
        const struct fx_jinja_loop *loop;
    };
};

/** One running {% for %}. */
struct fx_jinja_loop {
    struct fx_jinja_value items; /* a LIST */
    size_t index;
    uint32_t scope;              /* of its body */
    struct fx_jinja_value *kept; /* while a `for ... if` filters: what passed */
    size_t kept_count;
};

enum fx_jinja_op {
    FX_JI_TEXT,        /* a: constant, to the output */
    FX_JI_PRINT,       /* pops */
    FX_JI_CONST,       /* a: constant */
    FX_JI_LOAD,        /* a: name */
    FX_JI_STORE,       /* a: name; pops */
    FX_JI_ATTRIBUTE,   /* a: constant, the key; pops the object */
    FX_JI_ITEM,        /* pops key, object */
    FX_JI_SLICE,       /* pops step, stop, start, object */
    FX_JI_LIST,        /* a: count; pops them */
    FX_JI_NOT,         /* pops */
    FX_JI_NEGATE,      /* pops */
    FX_JI_PLUS,        /* pops */
    FX_JI_BINARY,      /* a: FX_JOP or FX_JB_; pops two */
    FX_JI_CONCAT,      /* pops two */
    FX_JI_JUMP,        /* a: from the next instruction; so in all jumps */
    FX_JI_JUMP_FALSE,  /* pops */
    FX_JI_AND,         /* false: jumps and keeps it; else pops */
    FX_JI_OR,          /* true: jumps and keeps it; else pops */
    FX_JI_FILTER,      /* a: row of fx_jinja__filters, b: arguments; pops them and the value */
    FX_JI_TEST,        /* the same with fx_jinja__tests */
    FX_JI_METHOD,      /* the same with fx_jinja__methods */
    FX_JI_RAISE,       /* pops the text */
    FX_JI_FOR,         /* a: jump where empty, b: name; pops what to iterate */
    FX_JI_NEXT,        /* a: jump to the body, b: name */
    FX_JI_LEAVE,       /* ends the loop (break) */
    FX_JI_SELECT,      /* as FOR, for the condition of `for ... if`; where empty pushes a list */
    FX_JI_SELECT_NEXT, /* pops the condition; a: jump to it again; at the end pushes the list */
    FX_JI_SCOPE,       /* a: 1 opens one, 0 closes */
};
enum { FX_JB_IN = 1, FX_JB_NOT_IN = 2 };

/** Variables that every template has, by number. */
enum fx_jinja_builtin {
    FX_JN_LOOP,
    FX_JN_MESSAGES,
    FX_JN_BOS_TOKEN,
    FX_JN_EOS_TOKEN,
    FX_JN_ADD_GENERATION_PROMPT,
    FX_JN_TOOLS,     /* none, as in transformers */
    FX_JN_DOCUMENTS, /* none */
    FX_JN_COUNT,
};

struct fx_jinja_instruction {
    uint16_t op, b;
    uint32_t line;
    int32_t a;
};

struct fx_template {
    struct fx_jinja_instruction *code;
    struct fx_jinja_value *constants;
    fx_span *names;
    size_t code_count, code_cap, constant_count, constant_cap, name_count;
    uint32_t scopes; /* the most that are open at once */
    uint8_t *pool;
};

/** What operations need of the machine. */
struct fx_jinja_run {
    fx_arena *arena;
    fx_error *err;
};
#define fx_jinja__full(run)                                                                        \
    fx_fail((run)->err, FX_RESOURCE_EXHAUSTED, "chat template: arena is full")
#define fx_jinja__bad(run, ...) fx_fail((run)->err, FX_INVALID_ARGUMENT, __VA_ARGS__)

/** A filter, test or method: args[0] is the value. */
typedef bool fx_jinja_function(struct fx_jinja_run *run, const struct fx_jinja_value *args,
                               size_t count, struct fx_jinja_value *out);
struct fx_jinja_callable {
    const char *name;
    size_t args_min, args_max;     /* without the value */
    const char *const *parameters; /* their keyword names, NULL: none may be named */
    fx_jinja_function *call;
};
/** Ended by a row without a name. */
extern const struct fx_jinja_callable fx_jinja__filters[], fx_jinja__tests[], fx_jinja__methods[];

/* jinja_text.c */
FX_MUST bool fx_jinja__concat(struct fx_jinja_run *run, const struct fx_jinja_text *parts,
                              size_t count, struct fx_jinja_text *out);
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
/** Writes a code point, returns its bytes; 0 for a surrogate or past U+10FFFF. */
size_t fx_jinja__put_char(uint32_t point, uint8_t out[4]);

/* jinja_value.c */
bool fx_jinja__truth(const struct fx_jinja_value *value);
bool fx_jinja__is_number(const struct fx_jinja_value *value);
const char *fx_jinja__kind_name(const struct fx_jinja_value *value);
FX_MUST bool fx_jinja__equal(struct fx_jinja_run *run, const struct fx_jinja_value *a,
                             const struct fx_jinja_value *b, bool *out);
FX_MUST bool fx_jinja__binary(struct fx_jinja_run *run, int32_t op, const struct fx_jinja_value *a,
                              const struct fx_jinja_value *b, struct fx_jinja_value *out);
FX_MUST bool fx_jinja__negate(struct fx_jinja_run *run, bool minus, struct fx_jinja_value *value);

/* jinja_access.c */
FX_MUST bool fx_jinja__item(struct fx_jinja_run *run, const struct fx_jinja_value *object,
                            const struct fx_jinja_value *key, struct fx_jinja_value *out);
/** parts: start, stop, step; NONE where left out. */
FX_MUST bool fx_jinja__slice(struct fx_jinja_run *run, const struct fx_jinja_value *object,
                             const struct fx_jinja_value parts[3], struct fx_jinja_value *out);
/** A LIST of what a for loop over `value` sees. */
FX_MUST bool fx_jinja__iterate(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                               struct fx_jinja_value *out);

/* jinja_json.c */
FX_MUST bool fx_jinja__to_json(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                               struct fx_jinja_text *out);

/* jinja_run.c */
/** Runs the code with these values of the builtins; `out` as in fx_template_render. */
FX_MUST bool fx_jinja__run(const struct fx_template *template,
                           const struct fx_jinja_value builtins[FX_JN_COUNT],
                           const bool bound[FX_JN_COUNT], fx_arena *arena, struct fx_segments *out,
                           fx_error *err);

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
FX_MUST bool fx_jinja__segments(struct fx_jinja_run *run, const struct fx_jinja_output *output,
                                struct fx_segments *out);

/* jinja_parse.c, jinja_expression.c, jinja_emit.c */
struct fx_jinja_parser {
    struct fx_template *template;
    const struct fx_jinja_token *token; /* the current one; END stays */
    uint32_t depth;                     /* of expressions */
    fx_error *err;
};
#define fx_jinja__refuse(parser, at, ...)                                                          \
    (fx_error_set((parser)->err, FX_INVALID_ARGUMENT, __VA_ARGS__),                                \
     fx_wrap((parser)->err, "line %u", (at)))
FX_MUST bool fx_jinja__parse(struct fx_jinja_parser *parser);
/** `conditional`: may be "a if b else c". Leaves its value on the stack. */
FX_MUST bool fx_jinja__expression(struct fx_jinja_parser *parser, bool conditional);
/** Appends an instruction at the line of the current token. */
FX_MUST bool fx_jinja__emit(struct fx_jinja_parser *parser, enum fx_jinja_op op, size_t b,
                            int64_t a);
FX_MUST bool fx_jinja__constant(struct fx_jinja_parser *parser, enum fx_jinja_op op,
                                struct fx_jinja_value value);
/** The number of a variable. */
FX_MUST bool fx_jinja__name(struct fx_jinja_parser *parser, fx_span name, size_t *out);
/** Points the jump at `at` to the next instruction emitted. */
void fx_jinja__land(struct fx_jinja_parser *parser, size_t at);
bool fx_jinja__is_op(const struct fx_jinja_parser *parser, uint16_t op);
bool fx_jinja__is_word(const struct fx_jinja_parser *parser, const char *word);
bool fx_jinja__skip_op(struct fx_jinja_parser *parser, uint16_t op);
bool fx_jinja__skip_word(struct fx_jinja_parser *parser, const char *word);
FX_MUST bool fx_jinja__expect_op(struct fx_jinja_parser *parser, uint16_t op);
/** "unexpected ..." at the current token. */
FX_MUST bool fx_jinja__unexpected(struct fx_jinja_parser *parser, const char *wanted);
