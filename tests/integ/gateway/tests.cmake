# The gateway between test servers and a real Redis.
if(TARGET fx_test_queue)
  add_library(fx_test_gateway STATIC integ/gateway/stage.c integ/gateway/stage_client.c
    integ/gateway/stage_worker.c)
  target_compile_definitions(fx_test_gateway PRIVATE FX_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(fx_test_gateway PUBLIC fx_svc_gateway fx_test_queue cmocka)
  foreach(name IN ITEMS answers hang_up outage refusals)
    fx_add_test(integ/gateway/test_${name}.c LABELS integ DEPS fx_test_gateway)
  endforeach()
  fx_add_test(integ/gateway/test_limits_lua.c LABELS integ DEPS fx_test_queue)
  target_compile_definitions(integ_gateway_test_limits_lua PRIVATE
    FX_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  # The real programs: what is timed here wants the machine for itself.
  add_library(fx_test_processes STATIC integ/gateway/processes.c)
  target_compile_definitions(fx_test_processes PRIVATE FX_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    FX_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  target_link_libraries(fx_test_processes PUBLIC fx_rpc fx_http fx_test_queue cmocka)
  fx_add_test(integ/gateway/test_path.c LABELS integ TIMEOUT 300
    DEPS fx_test_processes fx_test_gateway)
  set_tests_properties(integ/gateway/test_path PROPERTIES RESOURCE_LOCK e2e PROCESSORS 2)
  foreach(program IN ITEMS tenant slicer scheduler worker gateway)
    if(TARGET fractal-${program})
      add_dependencies(integ_gateway_test_path fractal-${program})
    endif()
  endforeach()
endif()
