fx_add_test(bench/bench_kernels.c LABELS bench DEPS fx_kernels)
