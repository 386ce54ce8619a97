#pragma once
#include "kernels/ops.h"

/* Launchers check shapes, count, cut an op into chunks and hand them to a backend's kernels, whose
 * results can't depend on the cut: each kernel call computes whole outputs. */

/** out[i] (+)= act[row of i] * weight^T for rows of one weight matrix. */
struct fx_mul {
    const struct fx_weight *weight;
    const struct fx_act *act;
    const uint32_t *row_of; /* [rows] rows of act; NULL: row i is act's row row_first + i */
    uint32_t row_first, rows;
    float *out; /* [rows][out_stride] */
    size_t out_stride;
    bool add;                            /* out += the finished chain, else out = it */
    uint32_t tiles_per_chunk, chunk_end; /* set by fx_launch_muls */
};

/** What attention reads for one row. */
struct fx_attend {
    const struct fx_shape *shape;
    const struct fx_kv *kv;
    const uint32_t *table; /* the sequence's page ids */
    uint32_t page_tokens;
    uint32_t first, position; /* keys first..position */
    const float *q;           /* [heads*head_dim] of the row */
    float *out;               /* [heads*head_dim] */
};

/** The last key that attention reads in the absolute 64-token block of `token`. */
static inline uint32_t fx_attend_block_end(const struct fx_attend *attend, uint32_t token) {
    uint32_t end = token | (FX_BLOCK - 1);
    return end < attend->position ? end : attend->position;
}

/** One backend's kernels: each gives the bits of kernels/ref. */
struct fx_kernels {
    /** Output tiles [tile_begin, tile_end) (8 weight rows each) of all rows of `mul`. */
    void (*matmul)(const struct fx_mul *mul, uint32_t tile_begin, uint32_t tile_end);
    /** out = x / sqrt(mean(x^2) + eps) * gain. @shape x, gain, out [cols] */
    void (*norm)(const float *x, const float *gain, uint32_t cols, float eps, float *out);
    /** Codes, scales and offsets of one row of act from its x. */
    void (*encode)(const struct fx_act *act, uint32_t row);
    /** Turns the pairs (i, i + half) in place. @shape head [2*half], cos, sin [half] */
    void (*rope)(float *head, const float *cos, const float *sin, uint32_t half);
    /** Writes one head's k and v at `token` of a page, which start at k_page and v_page. */
    void (*kv_write)(const struct fx_kv *kv, const float *k, const float *v, uint32_t head_dim,
                     uint32_t page_tokens, uint32_t token, uint8_t *k_page, uint8_t *v_page);
    /** The query heads that share `kv_head`, of one row. */
    void (*attend)(const struct fx_attend *attend, uint32_t kv_head);
    /** Softmax over the logits, the `count` best (the lower index wins a tie), their shares divided
     *  by their sum, or `raw`. */
    void (*route)(const float *logits, uint32_t experts, uint32_t count, bool raw, int32_t *chosen,
                  float *weight);
    /** out = gate / (1 + exp(-gate)) * up. @shape all [n] */
    void (*swiglu)(const float *gate, const float *up, uint32_t n, float *out);
    /** x += sum over k in order of weight[k] * rows[slot[k]]. @shape rows [..][n], x [n] */
    void (*combine)(const float *rows, const uint32_t *slot, const int32_t *chosen,
                    const float *weight, uint32_t count, uint32_t n, float *x);
};
static inline size_t fx_mul_row(const struct fx_mul *mul, uint32_t index) {
    return mul->row_of ? mul->row_of[index] : mul->row_first + index;
}
extern const struct fx_kernels fx_ref_kernels;
/** NULL when this processor (or build) has no AVX2, FMA and F16C. */
const struct fx_kernels *fx_cpu_kernels(void);

/* The ops over a backend's kernels; signatures of struct fx_ops. */
void fx_launch_embed(struct fx_exec *exec, const struct fx_step *step,
                     const struct fx_weight *table);
void fx_launch_norm(const struct fx_kernels *kernels, struct fx_exec *exec,
                    const struct fx_step *step, const struct fx_weight *gain, bool codes);
void fx_launch_qkv(const struct fx_kernels *kernels, struct fx_exec *exec,
                   const struct fx_step *step, const struct fx_qkv *weights,
                   const struct fx_kv *kv);
void fx_launch_attention(const struct fx_kernels *kernels, struct fx_exec *exec,
                         const struct fx_step *step, const struct fx_kv *kv, uint32_t window,
                         bool codes);
void fx_launch_out(const struct fx_kernels *kernels, struct fx_exec *exec,
                   const struct fx_step *step, const struct fx_weight *weight,
                   const struct fx_after *after);
void fx_launch_route(const struct fx_kernels *kernels, struct fx_exec *exec,
                     const struct fx_step *step, const struct fx_weight *router);
void fx_launch_experts(const struct fx_kernels *kernels, struct fx_exec *exec,
                       const struct fx_step *step, uint32_t layer, const struct fx_mlp *experts);
void fx_launch_mlp(const struct fx_kernels *kernels, struct fx_exec *exec,
                   const struct fx_step *step, const struct fx_mlp *weights,
                   const struct fx_after *after);
void fx_launch_head(const struct fx_kernels *kernels, struct fx_exec *exec,
                    const struct fx_step *step, const struct fx_weight *gain,
                    const struct fx_weight *weight);

/* What launchers share. */

/** Runs all matmuls as one set of chunks on the team. */
void fx_launch_muls(const struct fx_kernels *kernels, struct fx_exec *exec, uint32_t count);
/** Fills exec->muls[index]; its other members are zero. */
struct fx_mul *fx_launch_mul(struct fx_exec *exec, uint32_t index, const struct fx_weight *weight,
                             const struct fx_act *act, uint32_t rows, float *out,
                             size_t out_stride);
/** Adds a matmul over `rows` rows to the counters of dense matrices. */
void fx_launch_count_dense(struct fx_exec *exec, const struct fx_weight *weight, uint32_t rows);
/** Runs work(arg, row) for rows 0..rows-1, `row_cost` elements each, several rows a chunk. */
typedef void fx_row_work(void *arg, uint32_t row);
void fx_launch_rows(struct fx_exec *exec, uint32_t rows, uint64_t row_cost, fx_row_work *work,
                    void *arg);
/** exec->inner as the MLP wants it that runs now. */
const struct fx_act *fx_exec_inner(struct fx_exec *exec, uint32_t cols);
/** x += after(act of all rows * weight^T). @shape weight [hidden][act->cols] */
void fx_launch_add(const struct fx_kernels *kernels, struct fx_exec *exec,
                   const struct fx_weight *weight, const struct fx_act *act, uint32_t rows,
                   const struct fx_after *after);
/** Codes of all rows, if wanted. */
void fx_launch_encode(const struct fx_kernels *kernels, struct fx_exec *exec,
                      const struct fx_act *act, uint32_t rows);
/** True when a matmul over these weights reads codes. */
static inline bool fx_wants_codes(const struct fx_weight *weight) {
    return weight->layout == FX_LAYOUT_I4_T8;
}
void fx_launch_end(struct fx_exec *exec);

/** Histogram and scan: expert_offset, slot and slot_row of the assignments n = t*K + k in token-
 *  major order. Slot of n = offset of its expert + how many earlier ones chose the same expert;
 *  assignments to FX_EXPERT_NONE get no slot. @shape chosen, slot [count]; offset [experts+1] */
void fx_slots(const int32_t *chosen, uint32_t count, uint32_t per_row, uint32_t experts,
              uint32_t *offset, uint32_t *slot, uint32_t *slot_row);
