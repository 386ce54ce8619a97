fx_add_test(integ/rpc/test_unary.c LABELS integ DEPS fx_rpc)
