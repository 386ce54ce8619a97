#include "kernels/ref/ref.h"

const struct fx_kernels fx_ref_kernels = {
    .matmul = fx_ref_matmul,
    .norm = fx_ref_norm,
    .encode = fx_ref_encode,
    .rope = fx_ref_rope,
    .kv_write = fx_ref_kv_write,
    .attend = fx_ref_attend,
    .route = fx_ref_route,
    .swiglu = fx_ref_swiglu,
    .combine = fx_ref_combine,
};
