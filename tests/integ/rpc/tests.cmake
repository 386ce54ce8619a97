foreach(test IN ITEMS admit async balance blocking discovery drain health hostile reflection rotation tls unary)
  fx_add_test(integ/rpc/test_${test}.c LABELS integ DEPS fx_rpc)
endforeach()
fx_tests_wait(4 integ/rpc/test_drain)
