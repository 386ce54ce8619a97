#include "engine/engine_internal.h"
#include <string.h>

/* The rows of one sequence; its last row wants logits when it meets the end of the ids. */
static void rows_add(fx_engine *engine, uint32_t number) {
    const struct fx_engine__slot *slot = &engine->slots[number];
    struct fx_step *step = &engine->step;
    for (uint32_t i = 0; i < slot->rows; i++, step->rows++) {
        uint32_t position = slot->cached + i;
        engine->tokens[step->rows] = slot->ids[position];
        engine->positions[step->rows] = position;
        engine->sequences[step->rows] = number;
        if (engine->opts.on_row || position + 1 == slot->count)
            engine->logit_of[step->logit_rows++] = step->rows;
    }
}

static void step_build(fx_engine *engine) {
    engine->step = (struct fx_step){
        .tokens = engine->tokens,
        .positions = engine->positions,
        .sequences = engine->sequences,
        .logit_of = engine->logit_of,
        .page_tokens = engine->opts.page_tokens,
    };
    engine->step.tables = fx_kv_tables(engine->kv, &engine->step.table_stride);
    for (uint32_t age = 0; age < engine->order_count; age++)
        rows_add(engine, engine->order[age]);
}

/* Keeps what the last route chose; route's results live until the next layer's. */
static void trace_layer(fx_engine *engine, uint32_t layer) {
    if (!engine->opts.on_row) return;
    uint32_t layers = engine->config->layers, chosen = engine->config->experts_per_token;
    engine->ops->finish(&engine->exec, &engine->step);
    for (uint32_t row = 0; row < engine->step.rows; row++)
        memcpy(engine->traced + ((size_t)row * layers + layer) * chosen,
               engine->exec.chosen + (size_t)row * chosen, chosen * sizeof(*engine->traced));
}

static void experts_run(fx_engine *engine, uint32_t index) {
    const struct fx_engine__layer *layer = &engine->layers[index];
    const struct fx_after after = {.gate = &layer->weights->shared_gate};
    engine->ops->route(&engine->exec, &engine->step, &layer->weights->router);
    trace_layer(engine, index);
    engine->ops->experts(&engine->exec, &engine->step, index, layer->experts);
    if (layer->shared.gate.data)
        engine->ops->mlp(&engine->exec, &engine->step, &layer->shared, &after);
}

static void layer_run(fx_engine *engine, uint32_t index) {
    const struct fx_ops *ops = engine->ops;
    const struct fx_engine__layer *layer = &engine->layers[index];
    const struct fx_layer_weights *weights = layer->weights;
    const struct fx_after attended = {.norm = &weights->attn_post_norm};
    const struct fx_after computed = {.norm = &weights->mlp_post_norm};
    struct fx_exec *exec = &engine->exec;
    const struct fx_step *step = &engine->step;
    ops->norm(exec, step, &weights->attn_norm, engine->codes);
    ops->qkv(exec, step, &layer->qkv, &layer->kv);
    ops->attention(exec, step, &layer->kv, layer->window, engine->codes);
    ops->out(exec, step, &weights->o, &attended);
    ops->norm(exec, step, &weights->mlp_norm, engine->codes);
    if (fx_layer_set_has(&engine->config->expert_layers, index))
        experts_run(engine, index);
    else
        ops->mlp(exec, step, &layer->mlp, &computed);
}

void fx_engine__forward(fx_engine *engine) {
    const struct fx_ops *ops = engine->ops;
    step_build(engine);
    ops->embed(&engine->exec, &engine->step, &engine->weights->embed);
    for (uint32_t layer = 0; layer < engine->config->layers; layer++)
        layer_run(engine, layer);
    if (engine->step.logit_rows)
        ops->head(&engine->exec, &engine->step, &engine->weights->norm, &engine->weights->lm_head);
    ops->finish(&engine->exec, &engine->step);
}
