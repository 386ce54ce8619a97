# The gateway between test servers and a real Redis.
if(TARGET fx_test_queue)
  add_library(fx_test_gateway STATIC integ/gateway/stage.c integ/gateway/stage_client.c
    integ/gateway/stage_worker.c)
  target_compile_definitions(fx_test_gateway PRIVATE FX_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(fx_test_gateway PUBLIC fx_svc_gateway fx_test_queue cmocka)
  foreach(name IN ITEMS answers hang_up outage refusals)
    fx_add_test(integ/gateway/test_${name}.c LABELS integ DEPS fx_test_gateway)
  endforeach()
endif()
