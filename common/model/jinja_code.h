#pragma once
#include "common/model/jinja.h"

/* What the parser makes and the machine runs. */

enum {
    FX_JINJA_CODE_MAX = 65536,
    FX_JINJA_NAMES_MAX = 512,
    FX_JINJA_STACK_MAX = 1024, /* operands, so also elements of a list literal */
    FX_JINJA_CALLS_MAX = 64,   /* macros that call each other */
    FX_JINJA_MACROS_MAX = 256,
    FX_JINJA_PARAMETERS_MAX = 16, /* of a macro */
    FX_JINJA_TARGETS_MAX = 8,     /* `for a, b in ...` */
};

enum fx_jinja_op {
    FX_JI_TEXT,          /* a: constant, to the output */
    FX_JI_PRINT,         /* pops */
    FX_JI_CONST,         /* a: constant */
    FX_JI_LOAD,          /* a: name */
    FX_JI_STORE,         /* a: name; pops */
    FX_JI_ATTRIBUTE,     /* a: constant, the name; pops the object */
    FX_JI_SET_ATTRIBUTE, /* a: name of the namespace, b: name; pops the value */
    FX_JI_UNPACK,        /* a: count; pops what to iterate, pushes its items, the first on top */
    FX_JI_ITEM,          /* pops key, object */
    FX_JI_SLICE,         /* pops step, stop, start, object */
    FX_JI_LIST,          /* a: count; pops them; b: 1 a tuple */
    FX_JI_DICT,          /* a: count of pairs; pops them */
    FX_JI_NOT,           /* pops */
    FX_JI_NEGATE,        /* pops */
    FX_JI_PLUS,          /* pops */
    FX_JI_BINARY,        /* a: FX_JOP or FX_JB_; pops two */
    FX_JI_CHAIN,      /* b: FX_JOP; pops two; true: pushes the second, false: pushes it and jumps */
    FX_JI_CONCAT,     /* pops two */
    FX_JI_JUMP,       /* a: from the next instruction; so in all jumps */
    FX_JI_JUMP_FALSE, /* pops */
    FX_JI_AND,        /* false: jumps and keeps it; else pops */
    FX_JI_OR,         /* true: jumps and keeps it; else pops */
    FX_JI_APPLY,      /* a: constant, the filter or test; b: FX_JARGS; pops them and the value */
    FX_JI_METHOD,     /* the same with a method */
    FX_JI_CALL,       /* b: FX_JARGS; pops them and what is called */
    FX_JI_MACRO,      /* a: macro */
    FX_JI_DEFAULT,    /* b: name; a: jump where the parameter was given */
    FX_JI_RETURN,     /* ends a macro, pushes what it printed */
    FX_JI_CAPTURE,    /* a: 1 begins one; 0 ends it and pushes its text */
    FX_JI_FOR,        /* a: jump where empty, b: name; pops what to iterate */
    FX_JI_NEXT,       /* a: jump to the body, b: name */
    FX_JI_LEAVE,      /* ends the loop (break) */
    FX_JI_SELECT,     /* as FOR, for the condition of `for ... if`; where empty pushes a list */
    FX_JI_SELECT_NEXT, /* pops the condition; a: jump to it again; at the end pushes the list */
    FX_JI_SCOPE,       /* a: 1 opens one, 0 closes */
};
/** Arguments by position and by name in an instruction's b. A named one is its name, its value. */
#define FX_JARGS(count, keywords) ((size_t)(count) << 8 | (keywords))
enum { FX_JARGS_MAX = 255 };

/** Variables that every template has, by number. */
enum fx_jinja_builtin {
    FX_JN_LOOP,
    FX_JN_SELF, /* the template's blocks: there are none */
    FX_JN_MESSAGES,
    FX_JN_BOS_TOKEN,
    FX_JN_EOS_TOKEN,
    FX_JN_ADD_GENERATION_PROMPT,
    FX_JN_TOOLS,     /* none, as in transformers */
    FX_JN_DOCUMENTS, /* none */
    FX_JN_FUNCTIONS, /* from here on those of fx_jinja__builtins */
    FX_JN_COUNT = FX_JN_FUNCTIONS + 5,
};

struct fx_jinja_instruction {
    uint16_t op, b;
    uint32_t line;
    int32_t a;
};

struct fx_jinja_macro {
    size_t entry; /* first instruction */
    size_t name;
    size_t parameters[FX_JINJA_PARAMETERS_MAX], count;
};

struct fx_template {
    struct fx_jinja_instruction *code;
    struct fx_jinja_value *constants;
    fx_span *names;
    size_t code_count, code_cap, constant_count, constant_cap, name_count;
    struct fx_jinja_macro *macros; /* [FX_JINJA_MACROS_MAX], NULL while there are none */
    size_t macro_count;
    uint32_t scopes; /* the most that are open at once, outside of macros or in one */
    uint8_t *pool;
};

/* jinja_run.c */
/** Runs the code with these values of the builtins (ABSENT: not bound) and, below them, of the
 *  variables in the DICT `extra`; `out` as in fx_template_render. */
FX_MUST bool fx_jinja__run(const struct fx_template *template,
                           const struct fx_jinja_value builtins[FX_JN_COUNT],
                           const struct fx_jinja_value *extra, int64_t now_s, fx_arena *arena,
                           struct fx_segments *out, fx_error *err);

/* jinja_parse.c, jinja_expression.c, jinja_primary.c, jinja_emit.c */
struct fx_jinja_parser {
    struct fx_template *template;
    const struct fx_jinja_token *token;  /* the current one; END stays */
    uint32_t depth;                      /* of expressions */
    uint32_t called[FX_JINJA_NAMES_MAX]; /* line where a variable is called first, 0: nowhere */
    bool assigned[FX_JINJA_NAMES_MAX];
    fx_error *err;
};
#define fx_jinja__refuse(parser, at, ...)                                                          \
    (fx_error_set((parser)->err, FX_INVALID_ARGUMENT, __VA_ARGS__),                                \
     fx_wrap((parser)->err, "line %u", (at)))
FX_MUST bool fx_jinja__parse(struct fx_jinja_parser *parser);
/** `conditional`: may be "a if b else c". Leaves its value on the stack. */
FX_MUST bool fx_jinja__expression(struct fx_jinja_parser *parser, bool conditional);
/** The same, where "a, b" is a tuple. */
FX_MUST bool fx_jinja__tuple(struct fx_jinja_parser *parser, bool conditional);
/** One level deeper in an expression: parser->depth-- leaves it. */
FX_MUST bool fx_jinja__enter(struct fx_jinja_parser *parser);
/** A name, literal, list, mapping or parenthesis. */
FX_MUST bool fx_jinja__primary(struct fx_jinja_parser *parser);
/** "(a, b, name=c)", the current token is "(": FX_JARGS of what they push. */
FX_MUST bool fx_jinja__arguments(struct fx_jinja_parser *parser,
                                 const struct fx_jinja_callable *callee, size_t *args);
/** Applies the filter, test or method named by the current token to the value on the stack. */
FX_MUST bool fx_jinja__application(struct fx_jinja_parser *parser, enum fx_jinja_family family);
FX_MUST bool fx_jinja__push_none(struct fx_jinja_parser *parser);
FX_MUST bool fx_jinja__push_text(struct fx_jinja_parser *parser, fx_span text);
FX_MUST bool fx_jinja__push_integer(struct fx_jinja_parser *parser, int64_t integer);
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
