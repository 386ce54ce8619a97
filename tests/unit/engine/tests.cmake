foreach(name IN ITEMS kv philox)
  fx_add_test(unit/engine/test_${name}.c LABELS unit DEPS fx_engine)
endforeach()

# An engine and its prompts, for the tests of whole models.
fx_add_library(fx_test_engine SOURCES unit/engine/rig.c unit/engine/rig_prompts.c
  DEPS fx_engine Jansson::Jansson cmocka)
target_compile_definitions(fx_test_engine PRIVATE FX_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
foreach(name IN ITEMS bits golden bundled)
  fx_add_test(unit/engine/test_${name}.c LABELS unit golden DEPS fx_test_engine)
endforeach()
