fx_add_fuzzer(fuzz/env_fuzz.c DEPS fx_base)
