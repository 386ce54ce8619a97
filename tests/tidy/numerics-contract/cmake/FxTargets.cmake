target_compile_options(fx_flags INTERFACE -Wall)
