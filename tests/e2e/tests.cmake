# Real processes, one test after another: some measure milliseconds.
add_library(fx_test_suite STATIC e2e/freeze.c e2e/herd.c e2e/http_client.c e2e/listener.c e2e/monitor.c e2e/process.c e2e/suite.c
  e2e/suite_ask.c)
target_compile_definitions(fx_test_suite PRIVATE FX_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
  FX_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
target_link_libraries(fx_test_suite PUBLIC fx_test_queue fx_llhttp Jansson::Jansson cmocka)

# fx_add_e2e(NAME TIMEOUT DEPS...): e2e/test_NAME.c, over a suite; its programs are built with it.
function(fx_add_e2e name timeout)
  fx_add_test(e2e/test_${name}.c LABELS e2e TIMEOUT ${timeout} DEPS fx_test_suite ${ARGN})
  set_tests_properties(e2e/test_${name} PROPERTIES RESOURCE_LOCK e2e PROCESSORS 4)
  add_dependencies(e2e_test_${name} fractal-tenant fractal-slicer fractal-scheduler fractal-worker
    fractal-gateway fractal-cli)
endfunction()
foreach(name IN ITEMS cli faults http import memory readme telemetry)
  fx_add_e2e(${name} 180)
endforeach()
fx_add_e2e(batch 240)
fx_add_e2e(flat 240)
target_link_libraries(e2e_test_flat PRIVATE fx_rpc)
set_tests_properties(e2e/test_flat PROPERTIES LABELS "e2e;flat")

# Redis killed, cut, stalled, failed over, by TLS and under ACL users.
foreach(name IN ITEMS redis_loss redis_sentinel redis_stall redis_users)
  fx_add_e2e(${name} 180)
endforeach()
add_library(fx_slow_fsync MODULE e2e/slow_fsync.c)
target_compile_options(fx_slow_fsync PRIVATE -Wall -Wextra -Werror)
target_compile_definitions(fx_slow_fsync PRIVATE _GNU_SOURCE)
target_compile_definitions(e2e_test_redis_stall PRIVATE
  FX_SLOW_FSYNC_SO="$<TARGET_FILE:fx_slow_fsync>")
add_dependencies(e2e_test_redis_stall fx_slow_fsync)
target_compile_definitions(e2e_test_redis_users PRIVATE FX_SOURCE_DIR="${CMAKE_SOURCE_DIR}")

# ./fractal over this build folder. It cleans up when it is told to end, before ctest kills it.
add_test(NAME e2e/test_launcher COMMAND timeout --kill-after=25 270
  ${CMAKE_SOURCE_DIR}/tests/e2e/test_launcher.sh ${CMAKE_BINARY_DIR})
set_tests_properties(e2e/test_launcher PROPERTIES LABELS e2e TIMEOUT 300 RESOURCE_LOCK e2e
  PROCESSORS 4)
fx_add_e2e(hang_up 180)

# Clusters whose workers lack memory, and requests that are cancelled.
fx_add_e2e(preempt 240 fx_test_chaos)
fx_add_e2e(cancel 240 fx_test_chaos fx_rpc)
target_sources(e2e_test_cancel PRIVATE e2e/canceller.c)
fx_add_e2e(outages 180 fx_test_chaos)

fx_add_e2e(elastic 180)

# A disk of Redis's own, which only root may mount; else it says that it was not run.
fx_add_e2e(disk_full 180)
set_tests_properties(e2e/test_disk_full PROPERTIES SKIP_RETURN_CODE 77)

# Services whose wall clock is set by a library of ours that they get first.
fx_add_e2e(clock 180)
add_library(fx_clock_shift MODULE e2e/clock_shift.c)
target_compile_options(fx_clock_shift PRIVATE -Wall -Wextra -Werror)
target_compile_definitions(fx_clock_shift PRIVATE _GNU_SOURCE)
target_compile_definitions(e2e_test_clock PRIVATE FX_CLOCK_SHIFT_SO="$<TARGET_FILE:fx_clock_shift>")
add_dependencies(e2e_test_clock fx_clock_shift)

# Certificates that are replaced; a test waits until one has ended.
fx_add_e2e(rotation 180)
target_sources(e2e_test_rotation PRIVATE e2e/tls_tunnel.c)

# Restarts under load; this version's services beside those of the one before it.
fx_add_e2e(rolling 120 fx_test_chaos)
fx_add_e2e(skew 600 fx_test_chaos BY ${CMAKE_SOURCE_DIR}/tests/e2e/previous.sh)
set_tests_properties(e2e/test_skew PROPERTIES LABELS "e2e;skew" SKIP_RETURN_CODE 77)

# Clients whose gateway dies.
fx_add_e2e(comeback 180)
if(TARGET fractal-example-chat)
  add_dependencies(e2e_test_comeback fractal-example-chat)
endif()

# What each service says of itself, and how each ends.
fx_add_e2e(drain 300)
fx_add_e2e(health 240)

# 10,000 wait.
fx_add_e2e(fairness 120 fx_rpc fx_model)
