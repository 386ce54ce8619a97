# Processes die and freeze under running generations; what clients get is judged from outside.
add_library(fx_test_chaos STATIC chaos/cluster.c chaos/crowd.c chaos/proxy.c chaos/resp.c
  chaos/rolling.c chaos/rounds.c chaos/tally.c crowd/client.c crowd/requests.c)
target_link_libraries(fx_test_chaos PUBLIC fx_test_suite)

# fx_add_chaos(NAME TIMEOUT ARGS...): chaos/test_NAME.c; its programs are built with it.
function(fx_add_chaos name timeout)
  fx_add_test(chaos/test_${name}.c LABELS e2e TIMEOUT ${timeout} DEPS fx_test_chaos
    ARGS ${ARGN})
  set_tests_properties(chaos/test_${name} PROPERTIES RESOURCE_LOCK e2e PROCESSORS 4)
  add_dependencies(chaos_test_${name} fractal-tenant fractal-slicer fractal-scheduler fractal-worker
    fractal-gateway fractal-cli)
endfunction()
fx_add_chaos(chaos 240 78 6 8 roomy) # answers, at once, kills that must hit
fx_add_chaos(hints 60)
fx_add_chaos(lost 60)
fx_add_chaos(resume 60)
set_tests_properties(chaos/test_hints chaos/test_lost chaos/test_resume PROPERTIES
  LABELS "e2e;chaos")

# fx_add_chaos_run(NAME LABELS TIMEOUT ARGS...): the same program for longer, or with less room.
function(fx_add_chaos_run name labels timeout)
  add_test(NAME chaos/${name} COMMAND chaos_test_chaos ${ARGN})
  set_tests_properties(chaos/${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout}
    RESOURCE_LOCK e2e PROCESSORS 2)
endfunction()
fx_add_chaos_run(tight "e2e" 120 30 6 3 tight)
fx_add_chaos_run(300 "long;chaos" 900 300 8 30 roomy)
fx_add_chaos_run(300_tight "long;chaos" 900 300 12 20 tight)
fx_add_chaos_run(3000 "long;chaos-long" 3600 3000 12 200 roomy)
