foreach(test IN ITEMS descriptors loop pb pb_text protocol token trace)
  fx_add_test(unit/rpc/test_${test}.c LABELS unit DEPS fx_rpc)
endforeach()
