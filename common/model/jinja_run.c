#include "common/model/jinja_machine.h"

bool fx_jinja__push(struct fx_jinja_machine *machine, struct fx_jinja_value value) {
    if (machine->depth == FX_JINJA_STACK_MAX)
        return fx_fail(machine->run.err, FX_RESOURCE_EXHAUSTED, "more than %d operands",
                       FX_JINJA_STACK_MAX);
    machine->stack[machine->depth++] = value;
    return true;
}

const struct fx_jinja_value *fx_jinja__pop(struct fx_jinja_machine *machine, size_t count) {
    FX_ASSERT(machine->depth >= count);
    machine->depth -= count;
    return &machine->stack[machine->depth];
}

void fx_jinja__jump(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    machine->next = (size_t)((int64_t)machine->next + at->a);
}

static size_t slot(const struct fx_jinja_machine *machine, uint32_t scope, size_t name) {
    return scope * machine->template->name_count + name;
}

void fx_jinja__bind(struct fx_jinja_machine *machine, size_t name, struct fx_jinja_value value) {
    size_t at = slot(machine, machine->frame->scope, name);
    machine->frame->variables[at] = value;
    machine->frame->bound[at] = true;
}

void fx_jinja__scope_clear(struct fx_jinja_machine *machine) {
    size_t names = machine->template->name_count;
    memset(machine->frame->bound + slot(machine, machine->frame->scope, 0), 0,
           names * sizeof *machine->frame->bound);
}

static bool step_text(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    return fx_jinja__print(&machine->run, &machine->output,
                           machine->template->constants[at->a].text);
}

static bool step_print(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    struct fx_jinja_text text;
    (void)at;
    return fx_jinja__to_text(&machine->run, fx_jinja__pop(machine, 1), &text) &&
           fx_jinja__print(&machine->run, &machine->output, text);
}

static bool step_const(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    return fx_jinja__push(machine, machine->template->constants[at->a]);
}

/* In a frame's scopes up to `scope`; NULL where it is in none. */
static const struct fx_jinja_value *find_in(const struct fx_jinja_machine *machine,
                                            const struct fx_jinja_frame *frame, uint32_t scope,
                                            size_t name) {
    for (uint32_t i = scope + 1; i-- > 0;)
        if (frame->bound[slot(machine, i, name)]) return &frame->variables[slot(machine, i, name)];
    return NULL;
}

static bool step_load(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    size_t name = (size_t)at->a;
    const struct fx_jinja_frame *frame = machine->frame;
    const struct fx_jinja_value *found = find_in(machine, frame, frame->scope, name);
    struct fx_jinja_value key = fx_jinja__text_value(
                              fx_jinja__literal(machine->template->names[name])),
                          value;
    if (!found && frame != machine->frames) found = find_in(machine, machine->frames, 0, name);
    if (found && found->kind != FX_JV_ABSENT) return fx_jinja__push(machine, *found);
    key.kind = FX_JV_UNDEFINED;
    if (found) return fx_jinja__push(machine, key);
    key.kind = FX_JV_TEXT;
    return fx_jinja__item(&machine->run, machine->extra, &key, &value) &&
           fx_jinja__push(machine, value);
}

static bool step_store(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    fx_jinja__bind(machine, (size_t)at->a, *fx_jinja__pop(machine, 1));
    return true;
}

static bool step_attribute(struct fx_jinja_machine *machine,
                           const struct fx_jinja_instruction *at) {
    struct fx_jinja_value out;
    return fx_jinja__attribute(&machine->run, fx_jinja__pop(machine, 1),
                               &machine->template->constants[at->a], &out) &&
           fx_jinja__push(machine, out);
}

static bool step_set_attribute(struct fx_jinja_machine *machine,
                               const struct fx_jinja_instruction *at) {
    struct fx_jinja_value value = *fx_jinja__pop(machine, 1), name;
    if (!step_load(machine, at)) return false;
    struct fx_jinja_value space = *fx_jinja__pop(machine, 1);
    if (space.kind != FX_JV_NAMESPACE)
        return fx_jinja__bad(&machine->run, "cannot assign attribute on non-namespace object");
    name = fx_jinja__text_value(fx_jinja__literal(machine->template->names[at->b]));
    return fx_jinja__space_set(&machine->run, space.space, &name, value);
}

static bool step_unpack(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    size_t want = (size_t)at->a;
    struct fx_jinja_value items;
    if (!fx_jinja__iterate(&machine->run, fx_jinja__pop(machine, 1), &items)) return false;
    size_t count = items.list.count;
    if (count != want)
        return fx_jinja__bad(&machine->run, "%zu values to unpack, expected %zu", count, want);
    while (count--)
        if (!fx_jinja__push(machine, items.list.at[count])) return false;
    return true;
}

static bool step_item(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    const struct fx_jinja_value *args = fx_jinja__pop(machine, 2);
    struct fx_jinja_value out;
    (void)at;
    return fx_jinja__item(&machine->run, &args[0], &args[1], &out) && fx_jinja__push(machine, out);
}

static bool step_slice(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    const struct fx_jinja_value *args = fx_jinja__pop(machine, 4);
    struct fx_jinja_value out;
    (void)at;
    return fx_jinja__slice(&machine->run, &args[0], &args[1], &out) && fx_jinja__push(machine, out);
}

static bool step_list(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    size_t count = (size_t)at->a;
    const struct fx_jinja_value *args = fx_jinja__pop(machine, count);
    struct fx_jinja_value *items = fx_jinja__values(&machine->run, count);
    if (!items) return false;
    for (size_t i = 0; i < count; i++)
        items[i] = args[i];
    struct fx_jinja_value list = fx_jinja__list(items, count);
    list.list.tuple = at->b;
    return fx_jinja__push(machine, list);
}

static bool step_dict(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    size_t count = (size_t)at->a;
    struct fx_jinja_value dict;
    return fx_jinja__dict_new(&machine->run, fx_jinja__pop(machine, 2 * count), count, &dict) &&
           fx_jinja__push(machine, dict);
}

static bool step_not(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    bool truth = fx_jinja__truth(fx_jinja__pop(machine, 1));
    (void)at;
    return fx_jinja__push(machine, fx_jinja__bool(!truth));
}

static bool step_sign(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    struct fx_jinja_value value = *fx_jinja__pop(machine, 1);
    return fx_jinja__negate(&machine->run, at->op == FX_JI_NEGATE, &value) &&
           fx_jinja__push(machine, value);
}

static bool step_binary(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    const struct fx_jinja_value *args = fx_jinja__pop(machine, 2);
    struct fx_jinja_value out;
    return fx_jinja__binary(&machine->run, at->a, &args[0], &args[1], &out) &&
           fx_jinja__push(machine, out);
}

static bool step_chain(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    const struct fx_jinja_value *args = fx_jinja__pop(machine, 2);
    struct fx_jinja_value out, second = args[1];
    if (!fx_jinja__binary(&machine->run, at->b, &args[0], &args[1], &out)) return false;
    if (fx_jinja__truth(&out)) return fx_jinja__push(machine, second);
    fx_jinja__jump(machine, at);
    return fx_jinja__push(machine, out);
}

static bool step_concat(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    const struct fx_jinja_value *args = fx_jinja__pop(machine, 2);
    struct fx_jinja_value out = {.kind = FX_JV_TEXT};
    struct fx_jinja_text parts[2];
    (void)at;
    return fx_jinja__to_text(&machine->run, &args[0], &parts[0]) &&
           fx_jinja__to_text(&machine->run, &args[1], &parts[1]) &&
           fx_jinja__concat(&machine->run, parts, 2, &out.text) && fx_jinja__push(machine, out);
}

static bool step_jump(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    fx_jinja__jump(machine, at);
    return true;
}

static bool step_jump_false(struct fx_jinja_machine *machine,
                            const struct fx_jinja_instruction *at) {
    if (!fx_jinja__truth(fx_jinja__pop(machine, 1))) fx_jinja__jump(machine, at);
    return true;
}

static bool step_and_or(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    const struct fx_jinja_value *value = fx_jinja__pop(machine, 1);
    if (fx_jinja__truth(value) != (at->op == FX_JI_OR)) return true;
    machine->depth++; /* keep it */
    fx_jinja__jump(machine, at);
    return true;
}

void fx_jinja__scope_enter(struct fx_jinja_machine *machine) {
    machine->frame->scope++;
    FX_ASSERT(machine->frame->scope < machine->template->scopes);
    fx_jinja__scope_clear(machine);
}

static bool step_scope(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    if (at->a)
        fx_jinja__scope_enter(machine);
    else
        machine->frame->scope--;
    return true;
}

static fx_jinja_step *const steps[] = {
    [FX_JI_TEXT] = step_text,
    [FX_JI_PRINT] = step_print,
    [FX_JI_CONST] = step_const,
    [FX_JI_LOAD] = step_load,
    [FX_JI_STORE] = step_store,
    [FX_JI_ATTRIBUTE] = step_attribute,
    [FX_JI_SET_ATTRIBUTE] = step_set_attribute,
    [FX_JI_UNPACK] = step_unpack,
    [FX_JI_ITEM] = step_item,
    [FX_JI_SLICE] = step_slice,
    [FX_JI_LIST] = step_list,
    [FX_JI_DICT] = step_dict,
    [FX_JI_NOT] = step_not,
    [FX_JI_NEGATE] = step_sign,
    [FX_JI_PLUS] = step_sign,
    [FX_JI_BINARY] = step_binary,
    [FX_JI_CHAIN] = step_chain,
    [FX_JI_CONCAT] = step_concat,
    [FX_JI_JUMP] = step_jump,
    [FX_JI_JUMP_FALSE] = step_jump_false,
    [FX_JI_AND] = step_and_or,
    [FX_JI_OR] = step_and_or,
    [FX_JI_APPLY] = fx_jinja__step_apply,
    [FX_JI_METHOD] = fx_jinja__step_method,
    [FX_JI_CALL] = fx_jinja__step_call,
    [FX_JI_MACRO] = fx_jinja__step_macro,
    [FX_JI_DEFAULT] = fx_jinja__step_default,
    [FX_JI_RETURN] = fx_jinja__step_return,
    [FX_JI_CAPTURE] = fx_jinja__step_capture,
    [FX_JI_FOR] = fx_jinja__step_for,
    [FX_JI_NEXT] = fx_jinja__step_next,
    [FX_JI_LEAVE] = fx_jinja__step_leave,
    [FX_JI_SELECT] = fx_jinja__step_select,
    [FX_JI_SELECT_NEXT] = fx_jinja__step_select_next,
    [FX_JI_SCOPE] = step_scope,
};

static FX_MUST bool run_all(struct fx_jinja_machine *machine) {
    const struct fx_template *template = machine->template;
    struct fx_jinja_run *run = &machine->run;
    while (machine->next < template->code_count) {
        const struct fx_jinja_instruction *at = &template->code[machine->next++];
        if (run->steps++ >= FX_TEMPLATE_STEPS_MAX)
            return fx_fail(run->err, FX_RESOURCE_EXHAUSTED,
                           "chat template: line %u: more than %d steps", at->line,
                           FX_TEMPLATE_STEPS_MAX);
        if (steps[at->op](machine, at)) continue;
        bool bad_type = run->err->code == FX_INVALID_ARGUMENT && !run->raised;
        return bad_type ? fx_wrap(run->err, "chat template: line %u", at->line) : false;
    }
    return true;
}

bool fx_jinja__frame_init(struct fx_jinja_machine *machine, struct fx_jinja_frame *frame) {
    fx_arena *arena = machine->run.arena;
    size_t scopes = machine->template->scopes, slots = scopes * machine->template->name_count;
    frame->variables = fx_arena_array(arena, slots, sizeof *frame->variables);
    frame->bound = fx_arena_array(arena, slots, sizeof *frame->bound);
    frame->loops = fx_arena_array(arena, scopes, sizeof *frame->loops);
    if (frame->variables && frame->bound && frame->loops) return true;
    return fx_jinja__full(&machine->run);
}

static FX_MUST bool machine_init(struct fx_jinja_machine *machine) {
    machine->frame = machine->frames;
    machine->stack = fx_jinja__values(&machine->run, FX_JINJA_STACK_MAX);
    return machine->stack && fx_jinja__frame_init(machine, machine->frame);
}

bool fx_jinja__run(const struct fx_template *template,
                   const struct fx_jinja_value builtins[FX_JN_COUNT],
                   const struct fx_jinja_value *extra, int64_t now_s, fx_arena *arena,
                   struct fx_segments *out, fx_error *err) {
    fx_error own = {0}; /* the caller may not want one; we look at the code */
    struct fx_jinja_machine machine = {
        .run = {.arena = arena, .err = err ? err : &own, .now_s = now_s},
        .template = template,
        .extra = extra,
    };
    struct fx_jinja_value self = {.kind = FX_JV_NAMESPACE};
    if (!machine_init(&machine) || !fx_jinja__space_new(&machine.run, 0, &self.space)) return false;
    fx_jinja__bind(&machine, FX_JN_SELF, self);
    for (size_t i = 0; i < FX_JN_COUNT; i++)
        if (builtins[i].kind != FX_JV_ABSENT) fx_jinja__bind(&machine, i, builtins[i]);
    return run_all(&machine) && fx_jinja__segments(&machine.run, &machine.output, out);
}
