add_executable(fractal-bench bench/main.c bench/decode.c bench/kernels.c bench/tokenizer.c
  bench/tokenizer_ids.c)
target_link_libraries(fractal-bench PRIVATE fx_flags fx_engine fx_text)
if(NOT FX_NO_GRPC)
  target_sources(fractal-bench PRIVATE bench/child.c bench/echo.c bench/gateway.c
    bench/gateway_path.c bench/gateway_stand.c bench/load.c bench/load_read.c bench/rpc.c bench/rpc_bare.c
    bench/source.c bench/source_redis.c bench/source_rpc.c)
  target_link_libraries(fractal-bench PRIVATE fx_rpc fx_test_suite)
  target_compile_definitions(fractal-bench PRIVATE FX_BENCH_SERVICES
    FX_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  add_dependencies(fractal-bench fractal-tenant fractal-slicer fractal-scheduler fractal-worker
    fractal-gateway fractal-cli)
endif()
target_compile_definitions(fractal-bench PRIVATE FX_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
set_target_properties(fractal-bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
# Sanitizers slow the two backends by different factors.
if(NOT FX_SANITIZE)
  add_test(NAME bench/decode COMMAND fractal-bench decode --min 5)
  add_test(NAME bench/kernels COMMAND fractal-bench kernels 20)
  add_test(NAME bench/tokenizer COMMAND fractal-bench tokenizer)
  set_tests_properties(bench/decode bench/kernels bench/tokenizer PROPERTIES
    LABELS bench TIMEOUT 300 RUN_SERIAL ON)
  if(NOT FX_NO_GRPC)
    add_test(NAME bench/gateway COMMAND fractal-bench gateway)
    add_test(NAME bench/rpc COMMAND fractal-bench rpc)
    set_tests_properties(bench/gateway bench/rpc PROPERTIES LABELS bench TIMEOUT 600 RUN_SERIAL ON)
  endif()
endif()
