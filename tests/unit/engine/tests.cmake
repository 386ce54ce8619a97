foreach(name IN ITEMS kv logprobs philox sampler sampling)
  fx_add_test(unit/engine/test_${name}.c LABELS unit DEPS fx_engine)
endforeach()

# An engine and its prompts, for the tests of whole models.
fx_add_library(fx_test_engine SOURCES unit/engine/rig.c unit/engine/rig_prompts.c
  DEPS fx_engine Jansson::Jansson cmocka)
target_compile_definitions(fx_test_engine PRIVATE FX_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
foreach(name IN ITEMS bits bundled golden int4)
  fx_add_test(unit/engine/test_${name}.c LABELS golden TIMEOUT 600 DEPS fx_test_engine)
endforeach()
# Small enough for every sanitizer.
foreach(name IN ITEMS engine resume)
  fx_add_test(unit/engine/test_${name}.c LABELS unit DEPS fx_test_engine)
endforeach()
fx_add_test(unit/engine/test_heap.c LABELS unit DEPS fx_test_engine
  LINK LINKER:--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free)

# The worker's engine thread needs no gRPC, so it is tested here, where TSan reaches it.
fx_add_library(fx_test_engine_thread SOURCES ${CMAKE_SOURCE_DIR}/services/worker/engine_thread.c
  ${CMAKE_SOURCE_DIR}/services/worker/stop.c DEPS fx_engine fx_queue fx_text)
fx_add_test(unit/engine/test_thread.c LABELS unit DEPS fx_test_engine_thread fx_test_engine)
