if(TARGET fractal-gateway AND TARGET fractal-tenant AND TARGET fractal-scheduler
    AND TARGET fractal-slicer AND TARGET fractal-worker AND TARGET fractal-cli)
  add_test(NAME integ/env/env_tables COMMAND
    ${CMAKE_SOURCE_DIR}/tests/integ/env/env_tables.sh ${CMAKE_SOURCE_DIR}
    $<TARGET_FILE:fractal-gateway> $<TARGET_FILE:fractal-tenant> $<TARGET_FILE:fractal-scheduler>
    $<TARGET_FILE:fractal-slicer> $<TARGET_FILE:fractal-worker>
    $<TARGET_FILE:fractal-cli>)
  set_tests_properties(integ/env/env_tables PROPERTIES LABELS integ TIMEOUT 60)
endif()
