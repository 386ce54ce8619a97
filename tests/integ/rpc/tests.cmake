foreach(test IN ITEMS async unary)
  fx_add_test(integ/rpc/test_${test}.c LABELS integ DEPS fx_rpc)
endforeach()
