#pragma once
#include "common/base/error.h"
#include <stddef.h>
#include <stdint.h>

/* Measurements by hand: `fractal-bench NAME [ARGS]`. A new one is a file here and a row in main.c.
 */
struct bench {
    const char *name, *what;
    /* Prints its figures; false: it could not measure, or missed what --min asked for. */
    FX_MUST bool (*run)(int argc, char **argv, fx_error *err);
};

extern const struct bench bench_decode, bench_kernels, bench_tokenizer, bench_tokenizer_ids;
#ifdef FX_BENCH_SERVICES /* what needs gRPC */
extern const struct bench bench_gateway, bench_rpc;
#endif

/* Sorts and returns the middle. @pre count >= 1 */
double bench_median(double *values, size_t count);
