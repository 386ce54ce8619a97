#pragma once
#include "common/model/jinja_code.h"

/* The stack machine. A step is an instruction; values live in the arena. */

/** Variables and loops of the template itself or of a macro that is running. */
struct fx_jinja_frame {
    struct fx_jinja_value *variables; /* [scopes][names] */
    bool *bound;                      /* likewise */
    struct fx_jinja_loop *loops;      /* [scopes] */
    size_t loop_count;
    uint32_t scope;
    size_t back; /* instruction after the call */
};

/** Output set aside while a block's text is captured. */
struct fx_jinja_capture {
    struct fx_jinja_output output;
    struct fx_jinja_capture *outer;
};

struct fx_jinja_machine {
    struct fx_jinja_run run;
    const struct fx_template *template;
    const struct fx_jinja_value *extra; /* a DICT: variables below all others */
    size_t next;                        /* instruction */
    struct fx_jinja_value *stack;
    size_t depth;
    struct fx_jinja_frame frames[FX_JINJA_CALLS_MAX + 1], *frame;
    struct fx_jinja_output output;
    struct fx_jinja_capture *captures;
};

typedef bool fx_jinja_step(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at);

/* jinja_run.c */
FX_MUST bool fx_jinja__push(struct fx_jinja_machine *machine, struct fx_jinja_value value);
/** The lowest of the `count` values that leave the stack; good until the next push. */
const struct fx_jinja_value *fx_jinja__pop(struct fx_jinja_machine *machine, size_t count);
void fx_jinja__jump(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at);
void fx_jinja__bind(struct fx_jinja_machine *machine, size_t name, struct fx_jinja_value value);
void fx_jinja__scope_clear(struct fx_jinja_machine *machine);
void fx_jinja__scope_enter(struct fx_jinja_machine *machine);
/** Room for the variables of one frame. */
FX_MUST bool fx_jinja__frame_init(struct fx_jinja_machine *machine, struct fx_jinja_frame *frame);

/* jinja_run_loop.c */
bool fx_jinja__step_for(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at);
bool fx_jinja__step_next(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at);
bool fx_jinja__step_leave(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at);
bool fx_jinja__step_select(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at);
bool fx_jinja__step_select_next(struct fx_jinja_machine *machine,
                                const struct fx_jinja_instruction *at);

/* jinja_run_call.c */
bool fx_jinja__step_apply(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at);
bool fx_jinja__step_method(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at);
bool fx_jinja__step_call(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at);
bool fx_jinja__step_macro(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at);
bool fx_jinja__step_default(struct fx_jinja_machine *machine,
                            const struct fx_jinja_instruction *at);
bool fx_jinja__step_return(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at);
bool fx_jinja__step_capture(struct fx_jinja_machine *machine,
                            const struct fx_jinja_instruction *at);
