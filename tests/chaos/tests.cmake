# Processes die and freeze under running generations; what clients get is judged from outside.
add_library(fx_test_chaos STATIC chaos/client.c chaos/cluster.c chaos/crowd.c chaos/proxy.c
  chaos/requests.c chaos/resp.c chaos/rounds.c chaos/tally.c)
target_link_libraries(fx_test_chaos PUBLIC fx_test_suite)

# fx_add_chaos(NAME TIMEOUT ARGS...): chaos/test_NAME.c; its programs are built with it.
function(fx_add_chaos name timeout)
  fx_add_test(chaos/test_${name}.c LABELS e2e TIMEOUT ${timeout} DEPS fx_test_chaos
    ARGS ${ARGN})
  set_tests_properties(chaos/test_${name} PROPERTIES RESOURCE_LOCK e2e PROCESSORS 4)
  add_dependencies(chaos_test_${name} fractal-tenant fractal-slicer fractal-scheduler fractal-worker
    fractal-gateway fractal-cli)
endfunction()
fx_add_chaos(chaos 240 84 6 8) # answers, at once, kills that must hit
fx_add_chaos(hints 60)
fx_add_chaos(lost 60)
fx_add_chaos(resume 60)
set_tests_properties(chaos/test_hints chaos/test_lost chaos/test_resume PROPERTIES
  LABELS "e2e;chaos")

# The whole of it, by ./fractal test chaos and chaos-long alone.
add_test(NAME chaos/300 COMMAND chaos_test_chaos 300 8 30)
add_test(NAME chaos/3000 COMMAND chaos_test_chaos 3000 12 200)
set_tests_properties(chaos/300 PROPERTIES LABELS "long;chaos" TIMEOUT 900 RESOURCE_LOCK e2e
  PROCESSORS 4)
set_tests_properties(chaos/3000 PROPERTIES LABELS "long;chaos-long" TIMEOUT 3600 RESOURCE_LOCK e2e
  PROCESSORS 4)
