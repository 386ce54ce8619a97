#pragma once
#include "kernels/launch/launch.h"

/* FX_BACKEND(table, label, kernels): the ops table `table` over `kernels`, an expression. */
#define FX_BACKEND(table, label, kernels)                                                          \
    static void table##_norm(struct fx_exec *exec, const struct fx_step *step,                     \
                             const struct fx_weight *gain, bool codes) {                           \
        fx_launch_norm(kernels, exec, step, gain, codes);                                          \
    }                                                                                              \
    static void table##_qkv(struct fx_exec *exec, const struct fx_step *step,                      \
                            const struct fx_qkv *weights, const struct fx_kv *kv) {                \
        fx_launch_qkv(kernels, exec, step, weights, kv);                                           \
    }                                                                                              \
    static void table##_attention(struct fx_exec *exec, const struct fx_step *step,                \
                                  const struct fx_kv *kv, uint32_t window, bool codes) {           \
        fx_launch_attention(kernels, exec, step, kv, window, codes);                               \
    }                                                                                              \
    static void table##_out(struct fx_exec *exec, const struct fx_step *step,                      \
                            const struct fx_weight *weight, const struct fx_after *after) {        \
        fx_launch_out(kernels, exec, step, weight, after);                                         \
    }                                                                                              \
    static void table##_route(struct fx_exec *exec, const struct fx_step *step,                    \
                              const struct fx_weight *router) {                                    \
        fx_launch_route(kernels, exec, step, router);                                              \
    }                                                                                              \
    static void table##_experts(struct fx_exec *exec, const struct fx_step *step, uint32_t layer,  \
                                const struct fx_mlp *experts) {                                    \
        fx_launch_experts(kernels, exec, step, layer, experts);                                    \
    }                                                                                              \
    static void table##_mlp(struct fx_exec *exec, const struct fx_step *step,                      \
                            const struct fx_mlp *weights, const struct fx_after *after) {          \
        fx_launch_mlp(kernels, exec, step, weights, after);                                        \
    }                                                                                              \
    static void table##_head(struct fx_exec *exec, const struct fx_step *step,                     \
                             const struct fx_weight *gain, const struct fx_weight *weight) {       \
        fx_launch_head(kernels, exec, step, gain, weight);                                         \
    }                                                                                              \
    static void table##_finish(struct fx_exec *exec, const struct fx_step *step) {                 \
        (void)step; /* every op above has returned with its results */                             \
        fx_launch_end(exec);                                                                       \
    }                                                                                              \
    static const struct fx_ops table = {                                                           \
        .name = label,                                                                             \
        .embed = fx_launch_embed,                                                                  \
        .norm = table##_norm,                                                                      \
        .qkv = table##_qkv,                                                                        \
        .attention = table##_attention,                                                            \
        .out = table##_out,                                                                        \
        .route = table##_route,                                                                    \
        .experts = table##_experts,                                                                \
        .mlp = table##_mlp,                                                                        \
        .head = table##_head,                                                                      \
        .finish = table##_finish,                                                                  \
    }
