# Real processes, one test after another: some measure milliseconds.
function(fx_add_e2e name timeout)
  add_test(NAME e2e/${name} COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/e2e/test_${name}.py)
  set_tests_properties(e2e/${name} PROPERTIES LABELS e2e TIMEOUT ${timeout} RESOURCE_LOCK e2e
    PROCESSORS 2 ENVIRONMENT "E2E_BIN_DIR=${CMAKE_BINARY_DIR}/bin;PYTHONDONTWRITEBYTECODE=1")
endfunction()
fx_add_e2e(cli 120)
fx_add_e2e(http 120)
fx_add_e2e(batch 240)
fx_add_e2e(faults 180)
fx_add_e2e(memory 120)
fx_add_e2e(import 120)
fx_add_e2e(launcher 300)
fx_add_e2e(readme 120)
