#include "kernels/launch/launch.h"

/* In multiply-adds, some 40 a nanosecond: below PARALLEL_WORK_MIN waking others costs more than it
 * saves, below CHUNK_WORK_MIN a chunk is not worth its turn at the counter. */
enum { PARALLEL_WORK_MIN = 1 << 19, CHUNK_WORK_MIN = 1 << 16, CHUNKS_PER_THREAD = 4 };

static uint32_t ceil_div(uint64_t a, uint64_t b) {
    return (uint32_t)((a + b - 1) / b);
}

/* How many of `units`, each costing `unit_cost`, make a chunk. */
static uint32_t units_per_chunk(const struct fx_exec *exec, uint32_t units, uint64_t unit_cost) {
    uint32_t threads = fx_team_threads(exec->team);
    if (threads == 1 || units <= 1) return units ? units : 1;
    uint32_t worth = ceil_div(CHUNK_WORK_MIN, unit_cost ? unit_cost : 1);
    uint32_t fair = ceil_div(units, (uint64_t)threads * CHUNKS_PER_THREAD);
    return worth > fair ? worth : fair;
}

struct fx_mul *fx_launch_mul(struct fx_exec *exec, uint32_t index, const struct fx_weight *weight,
                             const struct fx_act *act, uint32_t rows, float *out,
                             size_t out_stride) {
    FX_ASSERT(weight->cols == act->cols && out_stride >= weight->rows);
    FX_ASSERT(weight->layout != FX_LAYOUT_F32_ROW);
    struct fx_mul *mul = &exec->muls[index];
    *mul = (struct fx_mul){.weight = weight, .act = act, .rows = rows, .out = out};
    mul->out_stride = out_stride;
    return mul;
}

struct mul_set {
    const struct fx_kernels *kernels;
    const struct fx_mul *muls;
    uint32_t count;
};

static uint32_t mul_tiles(const struct fx_mul *mul) {
    return ceil_div(mul->weight->rows, FX_TILE_ROWS);
}

static uint64_t mul_tile_cost(const struct fx_mul *mul) {
    return (uint64_t)FX_TILE_ROWS * mul->weight->cols * mul->rows;
}

static void mul_chunk(void *arg, uint32_t chunk) {
    const struct mul_set *set = arg;
    uint32_t low = 0, high = set->count - 1; /* the first mul whose chunks end after `chunk` */
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (set->muls[middle].chunk_end > chunk)
            high = middle;
        else
            low = middle + 1;
    }
    const struct fx_mul *mul = &set->muls[low];
    uint32_t first_chunk = low ? set->muls[low - 1].chunk_end : 0;
    uint32_t begin = (chunk - first_chunk) * mul->tiles_per_chunk, tiles = mul_tiles(mul);
    uint32_t end = tiles - begin < mul->tiles_per_chunk ? tiles : begin + mul->tiles_per_chunk;
    set->kernels->matmul(mul, begin, end);
}

void fx_launch_muls(const struct fx_kernels *kernels, struct fx_exec *exec, uint32_t count) {
    uint32_t chunks = 0;
    uint64_t cost = 0;
    for (uint32_t i = 0; i < count; i++)
        cost += mul_tiles(&exec->muls[i]) * mul_tile_cost(&exec->muls[i]);
    if (cost < PARALLEL_WORK_MIN) {
        for (uint32_t i = 0; i < count; i++)
            kernels->matmul(&exec->muls[i], 0, mul_tiles(&exec->muls[i]));
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct fx_mul *mul = &exec->muls[i];
        mul->tiles_per_chunk = units_per_chunk(exec, mul_tiles(mul), mul_tile_cost(mul));
        chunks += ceil_div(mul_tiles(mul), mul->tiles_per_chunk);
        mul->chunk_end = chunks;
    }
    struct mul_set set = {kernels, exec->muls, count};
    fx_team_run(exec->team, chunks, mul_chunk, &set);
}

void fx_launch_count_dense(struct fx_exec *exec, const struct fx_weight *weight, uint32_t rows) {
    exec->counts.dense_matmuls++;
    exec->counts.dense_rows += rows;
    exec->counts.weight_bytes += fx_weight_bytes(weight->layout, weight->rows, weight->cols);
}

struct row_set {
    fx_row_work *work;
    void *arg;
    uint32_t rows, per_chunk;
};

static void row_chunk(void *arg, uint32_t chunk) {
    const struct row_set *set = arg;
    uint32_t begin = chunk * set->per_chunk;
    uint32_t end = set->rows - begin < set->per_chunk ? set->rows : begin + set->per_chunk;
    for (uint32_t row = begin; row < end; row++)
        set->work(set->arg, row);
}

void fx_launch_rows(struct fx_exec *exec, uint32_t rows, uint64_t row_cost, fx_row_work *work,
                    void *arg) {
    bool small = rows * row_cost < PARALLEL_WORK_MIN;
    struct row_set set = {work, arg, rows, small ? rows : units_per_chunk(exec, rows, row_cost)};
    if (rows == 0) return;
    fx_team_run(exec->team, ceil_div(rows, set.per_chunk), row_chunk, &set);
}

struct encode_set {
    const struct fx_kernels *kernels;
    const struct fx_act *act;
};

static void encode_row(void *arg, uint32_t row) {
    const struct encode_set *set = arg;
    set->kernels->encode(set->act, row);
}

void fx_launch_encode(const struct fx_kernels *kernels, struct fx_exec *exec,
                      const struct fx_act *act, uint32_t rows) {
    struct encode_set set = {kernels, act};
    fx_launch_rows(exec, rows, (uint64_t)act->cols * 4, encode_row, &set);
}

void fx_launch_end(struct fx_exec *exec) {
    atomic_fetch_add_explicit(&exec->progress, 1, memory_order_relaxed);
}
