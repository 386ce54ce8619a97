#include "kernels/launch/launch.h"
#include "kernels/rope.h"

enum {
    LINE = 64,
    WIDTH_MAX = 1 << 20,
    VOCAB_MAX = 1 << 22,
    POSITIONS_MAX = 1 << 24,
    HEADS_MAX = 1024
};

static bool in_range(const char *name, uint64_t value, uint64_t min, uint64_t max, fx_error *err) {
    if (value >= min && value <= max) return true;
    return fx_fail(err, FX_INVALID_ARGUMENT, "%s = %llu is not in %llu..%llu", name,
                   (unsigned long long)value, (unsigned long long)min, (unsigned long long)max);
}

static FX_MUST bool experts_check(const struct fx_shape *shape, fx_error *err) {
    if (shape->experts == 0 && shape->experts_per_token == 0) return true;
    uint32_t most =
        shape->experts < FX_EXPERTS_PER_TOKEN_MAX ? shape->experts : FX_EXPERTS_PER_TOKEN_MAX;
    return in_range("expert_ffn", shape->expert_ffn, 1, WIDTH_MAX, err) &&
           in_range("shared_ffn", shape->shared_ffn, 0, WIDTH_MAX, err) &&
           in_range("experts", shape->experts, 1, FX_EXPERTS_MAX, err) &&
           in_range("experts_per_token", shape->experts_per_token, 1, most, err);
}

static FX_MUST bool rope_check(const struct fx_rope *rope, fx_error *err) {
    if (!(rope->theta >= 1 && rope->theta <= 1e12))
        return fx_fail(err, FX_INVALID_ARGUMENT, "rope theta is not in [1, 1e12]");
    if (rope->rule != FX_ROPE_AS_IS && !(rope->factor > 0))
        return fx_fail(err, FX_INVALID_ARGUMENT, "rope factor is not above 0");
    if (rope->rule == FX_ROPE_BANDED && !(rope->low > 0 && rope->high > rope->low))
        return fx_fail(err, FX_INVALID_ARGUMENT, "rope low and high are not in order");
    return true;
}

bool fx_shape_check(const struct fx_shape *shape, fx_error *err) {
    const struct {
        const char *name;
        uint64_t value, max;
    } members[] = {
        {"hidden",    shape->hidden,    WIDTH_MAX      },
        {"heads",     shape->heads,     HEADS_MAX      },
        {"kv_heads",  shape->kv_heads,  shape->heads   },
        {"head_dim",  shape->head_dim,  FX_HEAD_DIM_MAX},
        {"ffn",       shape->ffn,       WIDTH_MAX      },
        {"vocab",     shape->vocab,     VOCAB_MAX      },
        {"positions", shape->positions, POSITIONS_MAX  },
    };
    for (size_t i = 0; i < FX_COUNT(members); i++)
        if (!in_range(members[i].name, members[i].value, 1, members[i].max, err)) return false;
    if (shape->head_dim % 8)
        return fx_fail(err, FX_INVALID_ARGUMENT, "head_dim %u is not a multiple of 8",
                       shape->head_dim);
    if (shape->heads % shape->kv_heads)
        return fx_fail(err, FX_INVALID_ARGUMENT, "heads %u is not a multiple of kv_heads %u",
                       shape->heads, shape->kv_heads);
    if (!(shape->norm_eps >= 0 && shape->norm_eps < 1))
        return fx_fail(err, FX_INVALID_ARGUMENT, "norm_eps is not in [0, 1)");
    return rope_check(&shape->rope, err) && experts_check(shape, err);
}

uint64_t fx_kv_page_bytes(const struct fx_shape *shape, uint32_t page_tokens,
                          enum fx_kv_type type) {
    uint64_t size = type == FX_KV_F16 ? sizeof(uint16_t) : sizeof(float);
    return size * shape->kv_heads * shape->head_dim * page_tokens;
}

/* Hands out parts of the workspace, or with base NULL only counts them. */
struct layout {
    uint8_t *base;
    size_t used;
};

static void *take(struct layout *layout, uint64_t count, size_t size) {
    void *at = layout->base ? layout->base + layout->used : NULL;
    layout->used += (count * size + LINE - 1) / LINE * LINE;
    return at;
}

static uint32_t blocks_of(uint32_t cols) {
    return (cols + FX_BLOCK - 1) / FX_BLOCK;
}

static void act_width(struct fx_act *act, uint32_t cols) {
    act->cols = cols;
    act->blocks = blocks_of(cols);
    act->stride = act->blocks * FX_BLOCK;
}

/* Room for `blocks` blocks of all rows. */
static struct fx_act take_blocks(struct layout *layout, uint64_t blocks) {
    struct fx_act act = {0};
    act.x = take(layout, blocks * FX_BLOCK, sizeof *act.x);
    act.q = take(layout, blocks * FX_BLOCK, sizeof *act.q);
    act.scale = take(layout, blocks, sizeof *act.scale);
    act.offset = take(layout, blocks, sizeof *act.offset);
    return act;
}

static struct fx_act take_act(struct layout *layout, uint64_t rows, uint32_t cols) {
    struct fx_act act = take_blocks(layout, rows * blocks_of(cols));
    act_width(&act, cols);
    return act;
}

const struct fx_act *fx_exec_inner(struct fx_exec *exec, uint32_t cols) {
    act_width(&exec->inner, cols);
    return &exec->inner;
}

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Inner blocks of the widest MLP, of all its rows. */
static uint64_t inner_blocks(const struct fx_shape *shape, uint64_t rows) {
    uint64_t dense = most(blocks_of(shape->ffn), blocks_of(shape->shared_ffn));
    return rows * most(dense, (uint64_t)shape->experts_per_token * blocks_of(shape->expert_ffn));
}

static void take_attention(struct layout *layout, struct fx_exec *exec) {
    const struct fx_shape *shape = &exec->shape;
    uint64_t rows = exec->rows_max, kv_width = (uint64_t)shape->kv_heads * shape->head_dim;
    uint32_t q_width = shape->heads * shape->head_dim;
    exec->q = take(layout, rows * q_width, sizeof(float));
    exec->k = take(layout, rows * kv_width, sizeof(float));
    exec->v = take(layout, rows * kv_width, sizeof(float));
    exec->mixed = take_act(layout, rows, q_width);
    uint64_t turns = (uint64_t)shape->positions * (shape->head_dim / 2);
    exec->rope_cos = take(layout, turns, sizeof(float));
    exec->rope_sin = take(layout, turns, sizeof(float));
}

static void take_mlp(struct layout *layout, struct fx_exec *exec) {
    const struct fx_shape *shape = &exec->shape;
    uint64_t rows = exec->rows_max, per_row = shape->experts_per_token;
    uint64_t blocks = inner_blocks(shape, rows);
    exec->router_logits = take(layout, rows * shape->experts, sizeof(float));
    exec->chosen = take(layout, rows * per_row, sizeof(int32_t));
    exec->chosen_weight = take(layout, rows * per_row, sizeof(float));
    exec->expert_offset = take(layout, shape->experts + 1u, sizeof(uint32_t));
    exec->slot = take(layout, rows * per_row, sizeof(uint32_t));
    exec->slot_row = take(layout, rows * per_row, sizeof(uint32_t));
    exec->inner = take_blocks(layout, blocks);
    exec->gate = take(layout, blocks * FX_BLOCK, sizeof(float));
    exec->up = take(layout, blocks * FX_BLOCK, sizeof(float));
    exec->expert_out = take(layout, rows * per_row * shape->hidden, sizeof(float));
    exec->branch = take(layout, rows * shape->hidden, sizeof(float));
    exec->branch_gate = take(layout, rows, sizeof(float));
    exec->muls = take(layout, 2ull * shape->experts + 3, sizeof *exec->muls);
}

static void take_all(struct layout *layout, struct fx_exec *exec) {
    const struct fx_shape *shape = &exec->shape;
    exec->x = take(layout, (uint64_t)exec->rows_max * shape->hidden, sizeof(float));
    exec->normed = take_act(layout, exec->rows_max, shape->hidden);
    take_attention(layout, exec);
    take_mlp(layout, exec);
    exec->last = take_act(layout, exec->logit_rows_max, shape->hidden);
    exec->logits = take(layout, (uint64_t)exec->logit_rows_max * shape->vocab, sizeof(float));
}

size_t fx_ops_workspace(const struct fx_shape *shape, uint32_t rows_max, uint32_t logit_rows_max) {
    FX_ASSERT(logit_rows_max >= 1 && logit_rows_max <= rows_max && rows_max <= FX_ROWS_MAX);
    struct fx_exec exec = {.shape = *shape, .rows_max = rows_max, .logit_rows_max = logit_rows_max};
    struct layout layout = {NULL, LINE}; /* room to align the base */
    take_all(&layout, &exec);
    return layout.used;
}

void fx_exec_init(struct fx_exec *exec, const struct fx_shape *shape, uint32_t rows_max,
                  uint32_t logit_rows_max, void *workspace, fx_team *team) {
    *exec = (struct fx_exec){.shape = *shape, .rows_max = rows_max, .team = team};
    exec->logit_rows_max = logit_rows_max;
    size_t past = (uintptr_t)workspace % LINE;
    struct layout layout = {(uint8_t *)workspace + (past ? LINE - past : 0), 0};
    take_all(&layout, exec);
    fx_rope_table(&shape->rope, shape->head_dim, shape->positions, exec->rope_cos, exec->rope_sin);
}
