#include "common/model/jinja_machine.h"

/* Loops: a fresh scope in each round. */

static struct fx_jinja_loop *loop_top(struct fx_jinja_machine *machine) {
    FX_ASSERT(machine->frame->loop_count);
    return &machine->frame->loops[machine->frame->loop_count - 1];
}

/* A fresh scope with the item of this round; a selection has no `loop`. */
static void begin_round(struct fx_jinja_machine *machine, struct fx_jinja_loop *loop, size_t name) {
    machine->frame->scope = loop->scope;
    fx_jinja__scope_clear(machine);
    fx_jinja__bind(machine, name, loop->items.list.at[loop->index]);
    if (!loop->kept)
        fx_jinja__bind(machine, FX_JN_LOOP,
                       (struct fx_jinja_value){.kind = FX_JV_LOOP, .loop = loop});
}

static void leave_loop(struct fx_jinja_machine *machine) {
    machine->frame->scope = loop_top(machine)->scope - 1;
    machine->frame->loop_count--;
}

static void enter_loop(struct fx_jinja_machine *machine, struct fx_jinja_loop loop, size_t name) {
    fx_jinja__scope_enter(machine);
    loop.scope = machine->frame->scope;
    machine->frame->loops[machine->frame->loop_count++] = loop;
    begin_round(machine, loop_top(machine), name);
}

/* True where there is another round. */
static bool next_round(struct fx_jinja_machine *machine, size_t name) {
    struct fx_jinja_loop *loop = loop_top(machine);
    if (++loop->index == loop->items.list.count) return false;
    begin_round(machine, loop, name);
    return true;
}

bool fx_jinja__step_for(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    struct fx_jinja_loop loop = {0};
    if (!fx_jinja__iterate(&machine->run, fx_jinja__pop(machine, 1), &loop.items)) return false;
    if (loop.items.list.count)
        enter_loop(machine, loop, at->b);
    else
        fx_jinja__jump(machine, at);
    return true;
}

bool fx_jinja__step_next(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    if (next_round(machine, at->b))
        fx_jinja__jump(machine, at);
    else
        leave_loop(machine);
    return true;
}

bool fx_jinja__step_leave(struct fx_jinja_machine *machine, const struct fx_jinja_instruction *at) {
    (void)at;
    leave_loop(machine);
    return true;
}

bool fx_jinja__step_select(struct fx_jinja_machine *machine,
                           const struct fx_jinja_instruction *at) {
    struct fx_jinja_loop loop = {0};
    if (!fx_jinja__iterate(&machine->run, fx_jinja__pop(machine, 1), &loop.items)) return false;
    if (!loop.items.list.count) {
        fx_jinja__jump(machine, at);
        return fx_jinja__push(machine, loop.items);
    }
    loop.kept = fx_arena_array(machine->run.arena, loop.items.list.count, sizeof *loop.kept);
    if (!loop.kept) return fx_jinja__full(&machine->run);
    enter_loop(machine, loop, at->b);
    return true;
}

bool fx_jinja__step_select_next(struct fx_jinja_machine *machine,
                                const struct fx_jinja_instruction *at) {
    struct fx_jinja_loop *loop = loop_top(machine);
    if (fx_jinja__truth(fx_jinja__pop(machine, 1)))
        loop->kept[loop->kept_count++] = loop->items.list.at[loop->index];
    if (next_round(machine, at->b)) {
        fx_jinja__jump(machine, at);
        return true;
    }
    leave_loop(machine);
    return fx_jinja__push(machine, fx_jinja__list(loop->kept, loop->kept_count));
}
