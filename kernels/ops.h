#pragma once
#include "common/base/error.h"
#include "common/quant/weight.h"
#include "kernels/rope.h"
#include "kernels/team.h"
#include <stdatomic.h>

/* The ops of a transformer step, block-level and fused, over one step descriptor. A row's result
 * depends on that row and its cache only, and every backend gives the same bits (docs/kernels). */

enum {
    FX_CHAINS = 16,      /* interleaved chains of a row reduction; element j in chain j mod 16 */
    FX_CODE_MAX = 127,   /* largest activation code */
    FX_EXPERT_NONE = -1, /* a padding assignment: enters no histogram */
    FX_EXPERTS_MAX = 1024,
    FX_EXPERTS_PER_TOKEN_MAX = 32,
    FX_HEAD_DIM_MAX = 256, /* and a multiple of 8 */
    FX_ROWS_MAX = 8192,
};

/** What the ops must know of a model. Every width is in elements. */
struct fx_shape {
    uint32_t hidden;                     /* width of the residual stream */
    uint32_t heads, kv_heads;            /* heads % kv_heads == 0 */
    uint32_t head_dim;                   /* a multiple of 8, at most FX_HEAD_DIM_MAX */
    uint32_t ffn;                        /* inner width of a dense layer's MLP */
    uint32_t experts, experts_per_token; /* 0, 0: a dense model */
    uint32_t expert_ffn;                 /* of an expert; 0: no experts */
    uint32_t shared_ffn;                 /* of the expert that every row meets; 0: none */
    bool gates_raw;                      /* gates are the softmax's, not divided by their sum */
    uint32_t vocab;
    uint32_t positions; /* RoPE table length: positions are below it */
    float norm_eps;
    struct fx_rope rope;
};
/** INVALID_ARGUMENT names the member that is out of bounds. */
FX_MUST bool fx_shape_check(const struct fx_shape *shape, fx_error *err);

/** Where an expert lives; carried with each step, so that placement is no business of an op. */
enum fx_tier { FX_TIER_HBM, FX_TIER_RAM, FX_TIER_NVME, FX_TIER_REMOTE };
struct fx_home {
    uint32_t primary, replica; /* machine numbers; equal when there is no replica */
    enum fx_tier tier;
};
struct fx_homes {
    uint64_t epoch; /* grows with every change of the table */
    uint32_t layers, experts;
    const struct fx_home *at; /* [layers][experts] */
};

/** Rows of one step: any mix of decode rows and prefill rows of any sequences. All arrays are
 *  borrowed for the step. Rows of one sequence have ascending, consecutive positions, and every
 *  earlier position of it is in the cache (or behind the window). */
struct fx_step {
    uint32_t rows;
    const uint32_t *tokens;    /* [rows] < vocab */
    const uint32_t *positions; /* [rows] < shape.positions */
    const uint32_t *sequences; /* [rows] row of the page tables */
    const uint32_t *tables;    /* [sequences][table_stride] page ids:
                                  tables[seq * table_stride + pos / page_tokens] */
    uint32_t table_stride;
    uint32_t page_tokens;         /* 8, 16, 32 or 64 */
    uint32_t logit_rows;          /* how many rows want logits */
    const uint32_t *logit_of;     /* [logit_rows] row numbers */
    const struct fx_homes *homes; /* NULL: every expert is in this machine's RAM */
};

/** One layer's cache. Page p of K is at k + p * page_stride_bytes and is
 *  [kv_heads][head_dim][page_tokens] (tokens are lanes); of V [kv_heads][page_tokens][head_dim]
 *  (dims are lanes). Best 64-byte aligned. Unwritten elements are never read into a result. */
enum fx_kv_type { FX_KV_F32, FX_KV_F16 };
struct fx_kv {
    uint8_t *k, *v;
    uint64_t page_stride_bytes; /* a multiple of 4, >= fx_kv_page_bytes */
    enum fx_kv_type type;
};
/** Bytes of one K page (a V page is as large). */
uint64_t fx_kv_page_bytes(const struct fx_shape *shape, uint32_t page_tokens, enum fx_kv_type type);

/** Activation rows: f32, and on demand the int8 codes that int4 weights meet: per row and 64-block
 *  scale = max|x|/127, q = round-half-to-even(x/scale), |q| <= 127; a block with max 0 (or whose
 *  scale rounds to 0) has scale 0 and codes 0, one with NaN or infinity scale NaN and codes 0.
 *  @shape x [rows][stride], q [rows][stride], scale [rows][blocks], offset [rows][blocks] */
struct fx_act {
    float *x;
    int8_t *q;
    float *scale;
    int32_t *offset; /* 8 * sum of the block's codes: what weights stored as q+8 add too much */
    uint32_t cols, stride, blocks; /* stride = blocks * 64 >= cols; x and q are 0 past cols */
};

struct fx_counts {
    uint64_t dense_matmuls, dense_rows;   /* weight matrices read, and their rows summed */
    uint64_t expert_matmuls, expert_rows; /* the same of experts' matrices met by >= 1 row */
    uint64_t weight_bytes;                /* of all these matrices, each once per matmul */
};

/** Everything an op works on: threads, workspace, counters. One exec runs one step at a time.
 *  @thread the engine's, except `progress` */
struct fx_exec {
    struct fx_shape shape;
    uint32_t rows_max, logit_rows_max;
    fx_team *team;             /* borrowed */
    struct fx_counts counts;   /* grow for ever; the caller may zero them between steps */
    _Atomic uint64_t progress; /* grows with every op; any thread may read it */

    float *x;                   /* [rows][hidden] the residual stream */
    struct fx_act normed;       /* hidden wide: what the last norm made */
    float *q, *k, *v;           /* [rows][heads*head_dim], [rows][kv_heads*head_dim]: qkv */
    struct fx_act mixed;        /* heads*head_dim wide: what attention made */
    float *router_logits;       /* [rows][experts] what the last route computed */
    int32_t *chosen;            /* [rows][experts_per_token] expert ids, best first */
    float *chosen_weight;       /* [rows][experts_per_token] the gates */
    uint32_t *expert_offset;    /* [experts+1] first slot of each expert */
    uint32_t *slot;             /* [rows*experts_per_token] slot of assignment n = t*K + k */
    uint32_t *slot_row;         /* [slots] row of each slot: the inverse */
    float *gate, *up;           /* [slots][inner.stride] */
    struct fx_act inner;        /* [slots] silu(gate) * up, as wide as the MLP that ran last */
    float *expert_out;          /* [slots][hidden] */
    float *branch;              /* [rows][hidden] what is not added as it comes */
    float *branch_gate;         /* [rows] */
    struct fx_act last;         /* [logit_rows] hidden wide: the final norm */
    float *logits;              /* [logit_rows][vocab] what the last head computed */
    float *rope_cos, *rope_sin; /* [positions][head_dim/2] */
    struct fx_mul *muls;        /* the launchers' own: [2 * experts + 3] */
};

/** Bytes of workspace; an op allocates nothing. @pre a checked shape, 1 <= logit_rows_max <=
 *  rows_max <= FX_ROWS_MAX */
size_t fx_ops_workspace(const struct fx_shape *shape, uint32_t rows_max, uint32_t logit_rows_max);
/** Lays the workspace out and fills the RoPE tables. `workspace` is zeroed (of any alignment) and
 *  borrowed, as is `team`. */
void fx_exec_init(struct fx_exec *exec, const struct fx_shape *shape, uint32_t rows_max,
                  uint32_t logit_rows_max, void *workspace, fx_team *team);

/* A weight that a model lacks has data NULL. */
static inline const struct fx_weight *fx_weight_given(const struct fx_weight *weight) {
    return weight && weight->data ? weight : NULL;
}

struct fx_qkv {
    struct fx_weight q, k, v; /* [heads*head_dim][hidden], [kv_heads*head_dim][hidden] twice */
    struct fx_weight q_bias, k_bias, v_bias; /* or none: F32_ROW, as wide as the matrix has rows */
    struct fx_weight q_norm, k_norm;         /* or none: F32_ROW gains of head_dim for each head, or
                                                as wide as all heads of a row */
};
/** What the result of attention or of an MLP meets on its way to x. Both may be NULL or none. */
struct fx_after {
    const struct fx_weight *norm; /* F32_ROW [1][hidden]: x += norm(result) */
    const struct fx_weight *gate; /* [1][hidden] f32 or f16: x += sigmoid(gate normed) * result */
};
struct fx_mlp {
    struct fx_weight gate, up, down; /* [inner][hidden] twice, [hidden][inner] */
};

/** One backend. Every op enqueues; results may be read after `finish`. Matrices are in a T8 layout
 *  (f32, f16 or int4, freely mixed), gains in FX_LAYOUT_F32_ROW. `codes`: also make the int8 codes
 *  of the result, needed when a matmul that follows has int4 weights. */
struct fx_ops {
    const char *name;
    /** x[r] = table[tokens[r]]. @shape table [vocab][hidden] T8 */
    void (*embed)(struct fx_exec *exec, const struct fx_step *step, const struct fx_weight *table);
    /** normed[r] = x[r] / sqrt(mean(x[r]^2) + eps) * gain; a gain that is none: normed[r] = x[r].
     *  @shape gain [1][hidden] */
    void (*norm)(struct fx_exec *exec, const struct fx_step *step, const struct fx_weight *gain,
                 bool codes);
    /** q, k, v = normed * W^T + bias; q and k normed, then turned by RoPE (pairs i, i +
     *  head_dim/2); k and v into the cache. */
    void (*qkv)(struct fx_exec *exec, const struct fx_step *step, const struct fx_qkv *weights,
                const struct fx_kv *kv);
    /** mixed[r] = softmax(q k / sqrt(head_dim)) v over positions p of its sequence with
     *  pos - window < p <= pos; window 0: all of them. */
    void (*attention)(struct fx_exec *exec, const struct fx_step *step, const struct fx_kv *kv,
                      uint32_t window, bool codes);
    /** x[r] += after(mixed[r] * W^T). @shape weight [hidden][heads*head_dim] */
    void (*out)(struct fx_exec *exec, const struct fx_step *step, const struct fx_weight *weight,
                const struct fx_after *after);
    /** router_logits, chosen, chosen_weight and the slots of normed. @shape router
     *  [experts][hidden], f32 or f16 */
    void (*route)(struct fx_exec *exec, const struct fx_step *step, const struct fx_weight *router);
    /** x[r] += sum over k of chosen_weight * down(silu(gate(normed)) * up(normed)).
     *  `layer` names the row of step->homes. @shape experts [experts] */
    void (*experts)(struct fx_exec *exec, const struct fx_step *step, uint32_t layer,
                    const struct fx_mlp *experts);
    /** x[r] += after(down(silu(gate(normed)) * up(normed))): a dense layer's, or the expert that
     *  every row meets; ffn or shared_ffn wide inside. */
    void (*mlp)(struct fx_exec *exec, const struct fx_step *step, const struct fx_mlp *weights,
                const struct fx_after *after);
    /** logits[i] = norm(x[logit_of[i]]) * W^T. @shape gain [1][hidden], weight [vocab][hidden] */
    void (*head)(struct fx_exec *exec, const struct fx_step *step, const struct fx_weight *gain,
                 const struct fx_weight *weight);
    /** Returns when the results of every op so far can be read. */
    void (*finish)(struct fx_exec *exec, const struct fx_step *step);
};

/** "ref": plain C, the contract; "cpu": the best this processor has (AVX2+FMA+F16C, else ref).
 *  NULL with INVALID_ARGUMENT for another name. */
const struct fx_ops *fx_ops_pick(const char *name, fx_error *err);
/** "avx2" or "plain": what "cpu" runs on here; for logs, never for results. */
const char *fx_ops_cpu_level(void);
