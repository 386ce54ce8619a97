foreach(test IN ITEMS loop pb token trace)
  fx_add_test(unit/rpc/test_${test}.c LABELS unit DEPS fx_rpc)
endforeach()
