foreach(test IN ITEMS async balance blocking drain health reflection tls unary)
  fx_add_test(integ/rpc/test_${test}.c LABELS integ DEPS fx_rpc)
endforeach()
