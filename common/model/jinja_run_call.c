#include "common/model/jinja_machine.h"

/* Filters, tests, methods, functions and macros. */

static size_t positional(const struct fx_jinja_instruction *at) {
    return at->b >> 8;
}
static size_t keywords(const struct fx_jinja_instruction *at) {
    return at->b & 0xff;
}
/* What a call takes from the stack, with the value or function itself. */
static size_t operands(const struct fx_jinja_instruction *at) {
    return 1 + positional(at) + 2 * keywords(at);
}

bool fx_jinja__step_apply(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    const struct fx_jinja_callable *row = machine->template->constants[at->a].callable;
    const struct fx_jinja_value *args = fx_jinja__pop(machine, operands(at));
    struct fx_jinja_value out;
    return fx_jinja__apply(&machine->run, row, args, 1 + positional(at), keywords(at), &out) &&
           fx_jinja__push(machine, out);
}

bool fx_jinja__step_method(struct fx_jinja_machine *machine,
                           const struct fx_jinja_instruction *at) {
    const struct fx_jinja_callable *row = machine->template->constants[at->a].callable;
    const struct fx_jinja_value *args = fx_jinja__pop(machine, operands(at));
    struct fx_jinja_value out;
    if (args[0].kind == FX_JV_UNDEFINED)
        return fx_jinja__bad(&machine->run, "'%.*s' is undefined", (int)args[0].text.len,
                             (const char *)args[0].text.at);
    row = fx_jinja__method_of(&args[0], fx_span_str(row->name));
    if (!row)
        return fx_jinja__bad(&machine->run, "a %s has no method '%s'",
                             fx_jinja__kind_name(&args[0]),
                             machine->template->constants[at->a].callable->name);
    return fx_jinja__apply(&machine->run, row, args, 1 + positional(at), keywords(at), &out) &&
           fx_jinja__push(machine, out);
}

bool fx_jinja__step_macro(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    return fx_jinja__push(
        machine,
        (struct fx_jinja_value){.kind = FX_JV_MACRO, .macro = &machine->template->macros[at->a]});
}

static FX_MUST bool begin_capture(struct fx_jinja_machine *machine) {
    struct fx_jinja_capture *capture = fx_arena_alloc(machine->run.arena, sizeof *capture);
    if (!capture) return fx_jinja__full(&machine->run);
    *capture = (struct fx_jinja_capture){machine->output, machine->captures};
    machine->captures = capture;
    machine->output = (struct fx_jinja_output){0};
    return true;
}

static FX_MUST bool end_capture(struct fx_jinja_machine *machine) {
    struct fx_jinja_text text;
    FX_ASSERT(machine->captures);
    if (!fx_jinja__gather(&machine->run, &machine->output, &text)) return false;
    machine->output = machine->captures->output;
    machine->captures = machine->captures->outer;
    return fx_jinja__push(machine, fx_jinja__text_value(text));
}

bool fx_jinja__step_capture(struct fx_jinja_machine *machine,
                            const struct fx_jinja_instruction *at) {
    return at->a ? begin_capture(machine) : end_capture(machine);
}

static FX_MUST bool open_frame(struct fx_jinja_machine *machine) {
    struct fx_jinja_frame *frame = machine->frame + 1;
    if (frame == machine->frames + FX_COUNT(machine->frames))
        return fx_fail(machine->run.err, FX_RESOURCE_EXHAUSTED,
                       "chat template: more than %d macros call each other", FX_JINJA_CALLS_MAX);
    if (!frame->variables && !fx_jinja__frame_init(machine, frame)) return false;
    frame->scope = 0;
    frame->loop_count = 0;
    frame->back = machine->next;
    machine->frame = frame;
    fx_jinja__scope_clear(machine);
    return true;
}

static size_t parameter_of(const struct fx_jinja_machine *machine,
                           const struct fx_jinja_macro *macro, fx_span name) {
    size_t i = 0;
    while (i < macro->count && !fx_span_eq(machine->template->names[macro->parameters[i]], name))
        i++;
    return i;
}

/* What is missing is ABSENT: a default's code or nothing fills it. */
static FX_MUST bool bind_parameters(struct fx_jinja_machine *machine,
                                    const struct fx_jinja_macro *macro,
                                    const struct fx_jinja_value *args, size_t count,
                                    size_t keyword_count) {
    struct fx_jinja_value values[FX_JINJA_PARAMETERS_MAX];
    if (count > macro->count)
        return fx_jinja__bad(&machine->run, "the macro takes not more than %zu arguments",
                             macro->count);
    for (size_t i = 0; i < macro->count; i++)
        values[i] = i < count ? args[i] : (struct fx_jinja_value){.kind = FX_JV_ABSENT};
    for (const struct fx_jinja_value *pair = args + count; keyword_count--; pair += 2) {
        size_t i = parameter_of(machine, macro, fx_jinja__span(pair[0].text));
        if (i == macro->count || values[i].kind != FX_JV_ABSENT)
            return fx_jinja__bad(&machine->run, "the macro takes no argument '%.*s' here",
                                 (int)pair[0].text.len, (const char *)pair[0].text.at);
        values[i] = pair[1];
    }
    for (size_t i = 0; i < macro->count; i++)
        fx_jinja__bind(machine, macro->parameters[i], values[i]);
    return true;
}

static FX_MUST bool call_macro(struct fx_jinja_machine *machine, const struct fx_jinja_macro *macro,
                               const struct fx_jinja_value *args, size_t count,
                               size_t keyword_count) {
    if (!open_frame(machine) || !bind_parameters(machine, macro, args, count, keyword_count) ||
        !begin_capture(machine))
        return false;
    machine->next = macro->entry;
    return true;
}

bool fx_jinja__step_return(struct fx_jinja_machine *machine,
                           const struct fx_jinja_instruction *at) {
    (void)at;
    machine->next = machine->frame->back;
    machine->frame--;
    return end_capture(machine);
}

bool fx_jinja__step_default(struct fx_jinja_machine *machine,
                            const struct fx_jinja_instruction *at) {
    size_t slot = machine->frame->scope * machine->template->name_count + at->b;
    if (machine->frame->variables[slot].kind != FX_JV_ABSENT) fx_jinja__jump(machine, at);
    return true;
}

bool fx_jinja__step_call(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    const struct fx_jinja_value *callee = fx_jinja__pop(machine, operands(at));
    size_t count = positional(at), named = keywords(at);
    struct fx_jinja_value out;
    if (callee->kind == FX_JV_MACRO)
        return call_macro(machine, callee->macro, callee + 1, count, named);
    if (callee->kind == FX_JV_FUNCTION)
        return callee->function->call(&machine->run, callee + 1, count, named, &out) &&
               fx_jinja__push(machine, out);
    if (callee->kind == FX_JV_UNDEFINED)
        return fx_jinja__bad(&machine->run, "'%.*s' is undefined", (int)callee->text.len,
                             (const char *)callee->text.at);
    return fx_jinja__bad(&machine->run, "calling a %s is not supported",
                         fx_jinja__kind_name(callee));
}
