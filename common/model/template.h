#pragma once
#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/model/text.h"

/** A chat template: an interpreter for the Jinja that published templates use, with the settings
 *  of transformers (trim_blocks, lstrip_blocks, loop controls, its tojson). What it lacks is
 *  refused when compiled, naming the construct and its line. Immutable once made.
 *  @thread any, also at once */
typedef struct fx_template fx_template;
struct json_t;

enum {
    FX_TEMPLATE_SOURCE_BYTES_MAX = 256 * 1024,
    FX_TEMPLATE_DEPTH_MAX = 64,      /* nested blocks, or nested expressions */
    FX_TEMPLATE_STEPS_MAX = 2000000, /* nodes evaluated in one render */
    FX_TEMPLATE_OUTPUT_BYTES_MAX = 8 * 1024 * 1024,
    FX_TEMPLATE_MESSAGES_MAX = 4096,
};

/** `source` is copied. @own caller, fx_template_free()
 *  @err INVALID_ARGUMENT naming construct and line, RESOURCE_EXHAUSTED */
FX_MUST bool fx_template_compile(fx_span source, fx_template **out, fx_error *err);
void fx_template_free(fx_template *template);
/** Is it a name that every template has, which no variable may hide? */
bool fx_template_owns(fx_span name);
FX_DEFINE_AUTO(fx_template, fx_template_free)

struct fx_message {
    fx_span role;    /* system, developer, user, assistant, tool or function; else refused */
    fx_span content; /* UTF-8, no NUL needed */
};
struct fx_template_input {
    const struct fx_message *messages;
    size_t count;
    fx_span bos_token, eos_token;
    bool add_generation_prompt;
    /** All borrowed. */
    const struct json_t *objects; /* NULL, or a list of the messages whole, each an object with its
                                     fields in their order, in place of `messages` and `count` */
    const struct json_t *tools, *documents; /* lists, NULL: `none`, as in transformers */
    const struct json_t *variables;         /* an object, NULL: no more; may not hide the above */
    int64_t now_s; /* what strftime_now() takes for now, seconds since 1970; 0: the clock */
};

/** `out`: segments in `arena`, adjacent ones differ in origin, none is empty. What came from a
 *  message (but for its role), a tool, a document or a variable stays user text through
 *  concatenation, slices and filters.
 *  @err INVALID_ARGUMENT (raise_exception() of the template, its text is the error's; a bad role,
 *  a type error with its line), RESOURCE_EXHAUSTED (arena, steps, output) */
FX_MUST bool fx_template_render(const fx_template *template, const struct fx_template_input *input,
                                fx_arena *arena, struct fx_segments *out, fx_error *err);
