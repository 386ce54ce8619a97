foreach(test IN ITEMS descriptors loop pb protocol token trace)
  fx_add_test(unit/rpc/test_${test}.c LABELS unit DEPS fx_rpc)
endforeach()
