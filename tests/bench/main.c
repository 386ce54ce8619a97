#include "tests/bench/bench.h"
#include "common/base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct bench *const benches[] = {
    &bench_decode,  &bench_kernels, &bench_tokenizer, &bench_tokenizer_ids,
#ifdef FX_BENCH_SERVICES
    &bench_gateway, &bench_rpc,
#endif
};

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count) {
    qsort(values, count, sizeof(*values), by_size);
    return values[count / 2];
}

static void show(void) {
    (void)printf("usage: fractal-bench NAME [ARGS]\n\n");
    for (size_t i = 0; i < FX_COUNT(benches); i++)
        (void)printf("  %-13s %s\n", benches[i]->name, benches[i]->what);
}

static FX_MUST bool run(int argc, char **argv, fx_error *err) {
    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        show();
        return true;
    }
    for (size_t i = 0; i < FX_COUNT(benches); i++)
        if (strcmp(argv[1], benches[i]->name) == 0) return benches[i]->run(argc - 2, argv + 2, err);
    return fx_fail(err, FX_NOT_FOUND, "no bench '%s'; --help lists them", argv[1]);
}

int main(int argc, char **argv) {
    fx_error err = {0};
    fx_log_service("bench");
    return fx_exit(run(argc, argv, &err), &err);
}
