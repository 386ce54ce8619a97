# The gateway between test servers and a real Redis.
if(TARGET fx_test_queue)
  add_library(fx_test_gateway STATIC integ/gateway/rpc_client.c integ/gateway/stage.c integ/gateway/stage_client.c
    integ/gateway/stage_groups.c integ/gateway/stage_worker.c)
  target_compile_definitions(fx_test_gateway PRIVATE FX_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(fx_test_gateway PUBLIC fx_svc_gateway fx_test_queue cmocka)
  foreach(name IN ITEMS answers auth continues tokens hang_up limits rejoin once loops outage refusals rpc rpc_example submits unread)
    fx_add_test(integ/gateway/test_${name}.c LABELS integ DEPS fx_test_gateway)
  endforeach()
  foreach(name IN ITEMS cors hostile rpc_choices rpc_hostile rpc_rejoin)
    fx_add_test(integ/gateway/test_${name}.c LABELS integ DEPS fx_test_gateway)
  endforeach()
  if(TARGET fractal-gateway)
    fx_add_test(integ/gateway/test_limits_shared.c LABELS integ DEPS fx_test_gateway)
    add_dependencies(integ_gateway_test_limits_shared fractal-gateway)
    fx_tests_wait(14 integ/gateway/test_limits_shared)
  endif()
  # They wait for seconds to pass.
  foreach(name IN ITEMS telemetry telemetry_slow)
    fx_add_test(integ/gateway/test_${name}.c LABELS integ DEPS fx_test_gateway fx_test_suite)
  endforeach()
  fx_tests_wait(20 integ/gateway/test_telemetry integ/gateway/test_telemetry_slow
    integ/gateway/test_outage)
  fx_add_test(integ/gateway/test_limits_lua.c LABELS integ DEPS fx_test_queue)
  target_compile_definitions(integ_gateway_test_limits_lua PRIVATE
    FX_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  if(TARGET fractal-example-chat)
    add_dependencies(integ_gateway_test_rpc_example fractal-example-chat)
  endif()
  # It sleeps for 41 s: begun first, beside the others, and once (no sanitizer runs e2e).
  fx_add_test(integ/gateway/test_silence.c LABELS e2e DEPS fx_test_gateway)
  fx_tests_wait(1000 integ/gateway/test_silence)
  # The real programs: what is timed here wants the machine for itself.
  fx_add_test(integ/gateway/test_path.c LABELS integ TIMEOUT 300
    DEPS fx_test_suite fx_test_gateway)
  fx_add_test(integ/gateway/test_sampling.c LABELS integ TIMEOUT 300 DEPS fx_test_suite)
  add_dependencies(integ_gateway_test_sampling fractal-tenant fractal-slicer fractal-scheduler
    fractal-worker fractal-gateway fractal-cli)
  set_tests_properties(integ/gateway/test_path PROPERTIES RESOURCE_LOCK e2e PROCESSORS 4)
  add_dependencies(integ_gateway_test_path fractal-tenant fractal-slicer fractal-scheduler
    fractal-worker fractal-gateway fractal-cli)
endif()
