fx_add_library(fx_test_worker SOURCES integ/worker/fleet.c integ/worker/fleet_ask.c
  DEPS fx_test_suite fx_test_queue fx_queue fx_rpc fx_engine cmocka)
target_compile_definitions(fx_test_worker PRIVATE FX_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
  FX_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
foreach(name IN ITEMS batch cancel faults sampling text)
  fx_add_test(integ/worker/test_${name}.c LABELS integ TIMEOUT 240 DEPS fx_test_worker)
  add_dependencies(integ_worker_test_${name} fractal-worker fractal-scheduler)
endforeach()
fx_add_test(integ/worker/test_logits.c LABELS integ DEPS fx_test_engine)
add_dependencies(integ_worker_test_logits fractal-cli)
