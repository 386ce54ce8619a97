foreach(name IN ITEMS kv philox)
  fx_add_test(unit/engine/test_${name}.c LABELS unit DEPS fx_engine)
endforeach()
