foreach(name IN ITEMS probe arena certificates clock env error hash heap latency log logprob ring stops span)
  fx_add_test(unit/base/test_${name}.c LABELS unit DEPS fx_base)
endforeach()
