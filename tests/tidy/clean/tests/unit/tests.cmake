foreach(name IN ITEMS text)
  fx_add_test(unit/test_${name}.c LABELS unit DEPS fx_base)
endforeach()
