#include "common/model/jinja.h"

/* The stack machine. A step is an instruction; values live in the arena. */

struct machine {
    struct fx_jinja_run run;
    const struct fx_template *template;
    size_t next; /* instruction */
    struct fx_jinja_value *stack;
    size_t depth;
    struct fx_jinja_value *variables; /* [scopes][names] */
    bool *bound;                      /* likewise */
    uint32_t scope;
    struct fx_jinja_loop *loops; /* [scopes] */
    size_t loop_count;
    struct fx_jinja_output output;
};

typedef bool step(struct machine *machine, const struct fx_jinja_instruction *at);

static FX_MUST bool push(struct machine *machine, struct fx_jinja_value value) {
    if (machine->depth == FX_JINJA_STACK_MAX)
        return fx_fail(machine->run.err, FX_RESOURCE_EXHAUSTED, "more than %d operands",
                       FX_JINJA_STACK_MAX);
    machine->stack[machine->depth++] = value;
    return true;
}

static const struct fx_jinja_value *pop(struct machine *machine, size_t count) {
    FX_ASSERT(machine->depth >= count);
    machine->depth -= count;
    return &machine->stack[machine->depth];
}

static void jump(struct machine *machine, const struct fx_jinja_instruction *at) {
    machine->next = (size_t)((int64_t)machine->next + at->a);
}

static size_t slot(const struct machine *machine, uint32_t scope, size_t name) {
    return scope * machine->template->name_count + name;
}

static void bind(struct machine *machine, size_t name, struct fx_jinja_value value) {
    size_t at = slot(machine, machine->scope, name);
    machine->variables[at] = value;
    machine->bound[at] = true;
}

static void clear_scope(struct machine *machine) {
    size_t names = machine->template->name_count;
    memset(machine->bound + slot(machine, machine->scope, 0), 0, names * sizeof *machine->bound);
}

static bool step_text(struct machine *machine, const struct fx_jinja_instruction *at) {
    return fx_jinja__print(&machine->run, &machine->output,
                           machine->template->constants[at->a].text);
}

static bool step_print(struct machine *machine, const struct fx_jinja_instruction *at) {
    struct fx_jinja_text text;
    (void)at;
    return fx_jinja__to_text(&machine->run, pop(machine, 1), &text) &&
           fx_jinja__print(&machine->run, &machine->output, text);
}

static bool step_const(struct machine *machine, const struct fx_jinja_instruction *at) {
    return push(machine, machine->template->constants[at->a]);
}

static bool step_load(struct machine *machine, const struct fx_jinja_instruction *at) {
    size_t name = (size_t)at->a;
    for (uint32_t scope = machine->scope + 1; scope-- > 0;)
        if (machine->bound[slot(machine, scope, name)])
            return push(machine, machine->variables[slot(machine, scope, name)]);
    return push(machine,
                (struct fx_jinja_value){.kind = FX_JV_UNDEFINED,
                                        .text = fx_jinja__literal(machine->template->names[name])});
}

static bool step_store(struct machine *machine, const struct fx_jinja_instruction *at) {
    bind(machine, (size_t)at->a, *pop(machine, 1));
    return true;
}

static bool step_attribute(struct machine *machine, const struct fx_jinja_instruction *at) {
    struct fx_jinja_value out;
    return fx_jinja__item(&machine->run, pop(machine, 1), &machine->template->constants[at->a],
                          &out) &&
           push(machine, out);
}

static bool step_item(struct machine *machine, const struct fx_jinja_instruction *at) {
    const struct fx_jinja_value *args = pop(machine, 2);
    struct fx_jinja_value out;
    (void)at;
    return fx_jinja__item(&machine->run, &args[0], &args[1], &out) && push(machine, out);
}

static bool step_slice(struct machine *machine, const struct fx_jinja_instruction *at) {
    const struct fx_jinja_value *args = pop(machine, 4);
    struct fx_jinja_value out;
    (void)at;
    return fx_jinja__slice(&machine->run, &args[0], &args[1], &out) && push(machine, out);
}

static bool step_list(struct machine *machine, const struct fx_jinja_instruction *at) {
    size_t count = (size_t)at->a;
    const struct fx_jinja_value *args = pop(machine, count);
    struct fx_jinja_value *items = fx_arena_array(machine->run.arena, count, sizeof *items);
    if (!items) return fx_jinja__full(&machine->run);
    for (size_t i = 0; i < count; i++)
        items[i] = args[i];
    return push(machine, (struct fx_jinja_value){
                             .kind = FX_JV_LIST, .list = {items, count}
    });
}

static bool step_not(struct machine *machine, const struct fx_jinja_instruction *at) {
    bool truth = fx_jinja__truth(pop(machine, 1));
    (void)at;
    return push(machine, (struct fx_jinja_value){.kind = FX_JV_BOOL, .boolean = !truth});
}

static bool step_sign(struct machine *machine, const struct fx_jinja_instruction *at) {
    struct fx_jinja_value value = *pop(machine, 1);
    return fx_jinja__negate(&machine->run, at->op == FX_JI_NEGATE, &value) && push(machine, value);
}

static bool step_binary(struct machine *machine, const struct fx_jinja_instruction *at) {
    const struct fx_jinja_value *args = pop(machine, 2);
    struct fx_jinja_value out;
    return fx_jinja__binary(&machine->run, at->a, &args[0], &args[1], &out) && push(machine, out);
}

static bool step_concat(struct machine *machine, const struct fx_jinja_instruction *at) {
    const struct fx_jinja_value *args = pop(machine, 2);
    struct fx_jinja_value out = {.kind = FX_JV_TEXT};
    struct fx_jinja_text parts[2];
    (void)at;
    return fx_jinja__to_text(&machine->run, &args[0], &parts[0]) &&
           fx_jinja__to_text(&machine->run, &args[1], &parts[1]) &&
           fx_jinja__concat(&machine->run, parts, 2, &out.text) && push(machine, out);
}

static bool step_jump(struct machine *machine, const struct fx_jinja_instruction *at) {
    jump(machine, at);
    return true;
}

static bool step_jump_false(struct machine *machine, const struct fx_jinja_instruction *at) {
    if (!fx_jinja__truth(pop(machine, 1))) jump(machine, at);
    return true;
}

static bool step_and_or(struct machine *machine, const struct fx_jinja_instruction *at) {
    const struct fx_jinja_value *value = pop(machine, 1);
    if (fx_jinja__truth(value) != (at->op == FX_JI_OR)) return true;
    machine->depth++; /* keep it */
    jump(machine, at);
    return true;
}

static bool step_apply(struct machine *machine, const struct fx_jinja_instruction *at) {
    const struct fx_jinja_callable *rows = at->op == FX_JI_FILTER ? fx_jinja__filters
                                           : at->op == FX_JI_TEST ? fx_jinja__tests
                                                                  : fx_jinja__methods;
    size_t count = (size_t)at->b + 1;
    const struct fx_jinja_value *args = pop(machine, count);
    struct fx_jinja_value out;
    return rows[at->a].call(&machine->run, args, count, &out) && push(machine, out);
}

/* The template refuses the conversation: its text is the whole error. */
static bool step_raise(struct machine *machine, const struct fx_jinja_instruction *at) {
    struct fx_jinja_text text;
    (void)at;
    if (!fx_jinja__to_text(&machine->run, pop(machine, 1), &text)) return false;
    int len = text.len < sizeof machine->run.err->text ? (int)text.len : INT16_MAX;
    return fx_fail(machine->run.err, FX_INVALID_ARGUMENT, "%.*s", len, (const char *)text.at);
}

static void open_scope(struct machine *machine) {
    machine->scope++;
    FX_ASSERT(machine->scope < machine->template->scopes);
    clear_scope(machine);
}

static bool step_scope(struct machine *machine, const struct fx_jinja_instruction *at) {
    if (at->a)
        open_scope(machine);
    else
        machine->scope--;
    return true;
}

static struct fx_jinja_loop *loop_top(struct machine *machine) {
    FX_ASSERT(machine->loop_count);
    return &machine->loops[machine->loop_count - 1];
}

/* A fresh scope with the item of this round; a selection has no `loop`. */
static void begin_round(struct machine *machine, struct fx_jinja_loop *loop, size_t name) {
    machine->scope = loop->scope;
    clear_scope(machine);
    bind(machine, name, loop->items.list.at[loop->index]);
    if (!loop->kept)
        bind(machine, FX_JN_LOOP, (struct fx_jinja_value){.kind = FX_JV_LOOP, .loop = loop});
}

static void leave_loop(struct machine *machine) {
    machine->scope = loop_top(machine)->scope - 1;
    machine->loop_count--;
}

static void enter_loop(struct machine *machine, struct fx_jinja_loop loop, size_t name) {
    open_scope(machine);
    loop.scope = machine->scope;
    machine->loops[machine->loop_count++] = loop;
    begin_round(machine, loop_top(machine), name);
}

/* True where there is another round. */
static bool next_round(struct machine *machine, size_t name) {
    struct fx_jinja_loop *loop = loop_top(machine);
    if (++loop->index == loop->items.list.count) return false;
    begin_round(machine, loop, name);
    return true;
}

static bool step_for(struct machine *machine, const struct fx_jinja_instruction *at) {
    struct fx_jinja_loop loop = {0};
    if (!fx_jinja__iterate(&machine->run, pop(machine, 1), &loop.items)) return false;
    if (loop.items.list.count)
        enter_loop(machine, loop, at->b);
    else
        jump(machine, at);
    return true;
}

static bool step_next(struct machine *machine, const struct fx_jinja_instruction *at) {
    if (next_round(machine, at->b))
        jump(machine, at);
    else
        leave_loop(machine);
    return true;
}

static bool step_leave(struct machine *machine, const struct fx_jinja_instruction *at) {
    (void)at;
    leave_loop(machine);
    return true;
}

static bool step_select(struct machine *machine, const struct fx_jinja_instruction *at) {
    struct fx_jinja_loop loop = {0};
    if (!fx_jinja__iterate(&machine->run, pop(machine, 1), &loop.items)) return false;
    if (!loop.items.list.count) {
        jump(machine, at);
        return push(machine, loop.items);
    }
    loop.kept = fx_arena_array(machine->run.arena, loop.items.list.count, sizeof *loop.kept);
    if (!loop.kept) return fx_jinja__full(&machine->run);
    enter_loop(machine, loop, at->b);
    return true;
}

static bool step_select_next(struct machine *machine, const struct fx_jinja_instruction *at) {
    struct fx_jinja_loop *loop = loop_top(machine);
    if (fx_jinja__truth(pop(machine, 1)))
        loop->kept[loop->kept_count++] = loop->items.list.at[loop->index];
    if (next_round(machine, at->b)) {
        jump(machine, at);
        return true;
    }
    leave_loop(machine);
    return push(machine, (struct fx_jinja_value){
                             .kind = FX_JV_LIST, .list = {loop->kept, loop->kept_count}
    });
}

static step *const steps[] = {
    [FX_JI_TEXT] = step_text,
    [FX_JI_PRINT] = step_print,
    [FX_JI_CONST] = step_const,
    [FX_JI_LOAD] = step_load,
    [FX_JI_STORE] = step_store,
    [FX_JI_ATTRIBUTE] = step_attribute,
    [FX_JI_ITEM] = step_item,
    [FX_JI_SLICE] = step_slice,
    [FX_JI_LIST] = step_list,
    [FX_JI_NOT] = step_not,
    [FX_JI_NEGATE] = step_sign,
    [FX_JI_PLUS] = step_sign,
    [FX_JI_BINARY] = step_binary,
    [FX_JI_CONCAT] = step_concat,
    [FX_JI_JUMP] = step_jump,
    [FX_JI_JUMP_FALSE] = step_jump_false,
    [FX_JI_AND] = step_and_or,
    [FX_JI_OR] = step_and_or,
    [FX_JI_FILTER] = step_apply,
    [FX_JI_TEST] = step_apply,
    [FX_JI_METHOD] = step_apply,
    [FX_JI_RAISE] = step_raise,
    [FX_JI_FOR] = step_for,
    [FX_JI_NEXT] = step_next,
    [FX_JI_LEAVE] = step_leave,
    [FX_JI_SELECT] = step_select,
    [FX_JI_SELECT_NEXT] = step_select_next,
    [FX_JI_SCOPE] = step_scope,
};

static FX_MUST bool run_all(struct machine *machine) {
    const struct fx_template *template = machine->template;
    for (uint32_t count = 0; machine->next < template->code_count; count++) {
        const struct fx_jinja_instruction *at = &template->code[machine->next++];
        if (count == FX_TEMPLATE_STEPS_MAX)
            return fx_fail(machine->run.err, FX_RESOURCE_EXHAUSTED,
                           "chat template: line %u: more than %d steps", at->line,
                           FX_TEMPLATE_STEPS_MAX);
        if (steps[at->op](machine, at)) continue;
        bool bad_type = machine->run.err->code == FX_INVALID_ARGUMENT && at->op != FX_JI_RAISE;
        return bad_type ? fx_wrap(machine->run.err, "chat template: line %u", at->line) : false;
    }
    return true;
}

static FX_MUST bool machine_init(struct machine *machine) {
    fx_arena *arena = machine->run.arena;
    size_t scopes = machine->template->scopes, slots = scopes * machine->template->name_count;
    machine->stack = fx_arena_array(arena, FX_JINJA_STACK_MAX, sizeof *machine->stack);
    machine->variables = fx_arena_array(arena, slots, sizeof *machine->variables);
    machine->bound = fx_arena_array(arena, slots, sizeof *machine->bound);
    machine->loops = fx_arena_array(arena, scopes, sizeof *machine->loops);
    if (machine->stack && machine->variables && machine->bound && machine->loops) return true;
    return fx_jinja__full(&machine->run);
}

bool fx_jinja__run(const struct fx_template *template,
                   const struct fx_jinja_value builtins[FX_JN_COUNT], const bool bound[FX_JN_COUNT],
                   fx_arena *arena, struct fx_segments *out, fx_error *err) {
    fx_error own = {0}; /* the caller may not want one; we look at the code */
    struct machine machine = {
        .run = {arena, err ? err : &own},
          .template = template
    };
    if (!machine_init(&machine)) return false;
    for (size_t i = 0; i < FX_JN_COUNT; i++)
        if (bound[i]) bind(&machine, i, builtins[i]);
    return run_all(&machine) && fx_jinja__segments(&machine.run, &machine.output, out);
}
