# Processes die and freeze under running generations; what clients get is judged from outside.
add_library(fx_test_chaos STATIC chaos/client.c chaos/cluster.c chaos/proxy.c chaos/requests.c
  chaos/resp.c chaos/rounds.c chaos/tally.c)
target_link_libraries(fx_test_chaos PUBLIC fx_test_suite)
fx_add_test(chaos/test_chaos.c LABELS e2e TIMEOUT 240 DEPS fx_test_chaos ARGS 45 5 5)
add_dependencies(chaos_test_chaos fractal-tenant fractal-slicer fractal-scheduler fractal-worker
  fractal-gateway fractal-cli)
set_tests_properties(chaos/test_chaos PROPERTIES RESOURCE_LOCK e2e PROCESSORS 2)
