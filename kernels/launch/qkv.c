#include "kernels/launch/launch.h"

struct turn_set {
    const struct fx_kernels *kernels;
    const struct fx_exec *exec;
    const struct fx_step *step;
    const struct fx_qkv *weights;
    const struct fx_kv *kv;
};

static void bias_add(const struct fx_weight *bias, uint32_t width, float *out) {
    if (!bias->data) return;
    FX_ASSERT(bias->layout == FX_LAYOUT_F32_ROW && bias->cols == width);
    const float *add = bias->data;
    for (uint32_t i = 0; i < width; i++)
        out[i] += add[i];
}

/* Each head by itself, or all heads of the row as one: the gain's width says which. */
static void heads_norm(const struct turn_set *set, const struct fx_weight *gain, uint32_t width,
                       float *heads) {
    if (!gain->data) return;
    FX_ASSERT(gain->layout == FX_LAYOUT_F32_ROW && width % gain->cols == 0);
    for (uint32_t at = 0; at < width; at += gain->cols)
        set->kernels->norm(heads + at, gain->data, gain->cols, set->exec->shape.norm_eps,
                           heads + at);
}

static uint32_t page_of(const struct fx_step *step, uint32_t row) {
    const uint32_t *table = step->tables + (size_t)step->sequences[row] * step->table_stride;
    return table[step->positions[row] / step->page_tokens];
}

/* One row: biases, norms, RoPE, then its k and v into the cache. */
static void turn_row(void *arg, uint32_t row) {
    const struct turn_set *set = arg;
    const struct fx_shape *shape = &set->exec->shape;
    const struct fx_step *step = set->step;
    uint32_t dim = shape->head_dim, half = dim / 2, position = step->positions[row];
    uint32_t q_width = shape->heads * dim, kv_width = shape->kv_heads * dim;
    FX_ASSERT(position < shape->positions);
    const float *cos = set->exec->rope_cos + (size_t)position * half;
    const float *sin = set->exec->rope_sin + (size_t)position * half;
    float *q = set->exec->q + (size_t)row * q_width;
    bias_add(&set->weights->q_bias, q_width, q);
    heads_norm(set, &set->weights->q_norm, q_width, q);
    for (uint32_t head = 0; head < shape->heads; head++)
        set->kernels->rope(q + (size_t)head * dim, cos, sin, half);

    float *k = set->exec->k + (size_t)row * kv_width, *v = set->exec->v + (size_t)row * kv_width;
    bias_add(&set->weights->k_bias, kv_width, k);
    bias_add(&set->weights->v_bias, kv_width, v);
    heads_norm(set, &set->weights->k_norm, kv_width, k);
    uint64_t page_at = page_of(step, row) * set->kv->page_stride_bytes;
    uint64_t head_bytes =
        fx_kv_page_bytes(shape, step->page_tokens, set->kv->type) / shape->kv_heads;
    for (uint32_t head = 0; head < shape->kv_heads; head++) {
        uint64_t at = page_at + head * head_bytes;
        set->kernels->rope(k + (size_t)head * dim, cos, sin, half);
        set->kernels->kv_write(set->kv, k + (size_t)head * dim, v + (size_t)head * dim, dim,
                               step->page_tokens, position % step->page_tokens, set->kv->k + at,
                               set->kv->v + at);
    }
}

void fx_launch_qkv(const struct fx_kernels *kernels, struct fx_exec *exec,
                   const struct fx_step *step, const struct fx_qkv *weights,
                   const struct fx_kv *kv) {
    const struct fx_shape *shape = &exec->shape;
    uint32_t q_width = shape->heads * shape->head_dim, kv_width = shape->kv_heads * shape->head_dim;
    FX_ASSERT(step->rows <= exec->rows_max && weights->q.rows == q_width);
    FX_ASSERT(weights->k.rows == kv_width && weights->v.rows == kv_width);
    (void)fx_launch_mul(exec, 0, &weights->q, &exec->normed, step->rows, exec->q, q_width);
    (void)fx_launch_mul(exec, 1, &weights->k, &exec->normed, step->rows, exec->k, kv_width);
    (void)fx_launch_mul(exec, 2, &weights->v, &exec->normed, step->rows, exec->v, kv_width);
    fx_launch_muls(kernels, exec, 3);
    fx_launch_count_dense(exec, &weights->q, step->rows);
    fx_launch_count_dense(exec, &weights->k, step->rows);
    fx_launch_count_dense(exec, &weights->v, step->rows);

    struct turn_set set = {kernels, exec, step, weights, kv};
    fx_launch_rows(exec, step->rows, q_width + 4ull * kv_width, turn_row, &set);
    fx_launch_end(exec);
}
