foreach(name IN ITEMS math team matmul rows attend step exec accuracy)
  fx_add_test(unit/kernels/test_${name}.c LABELS unit DEPS fx_kernels m)
endforeach()
