# The tree itself, and for each rule a tree that breaks it.
add_test(NAME tidy/tree COMMAND fx_tidy ${CMAKE_SOURCE_DIR})
set_tests_properties(tidy/tree PROPERTIES LABELS tidy TIMEOUT 60)
foreach(case IN ITEMS clean call-print calls comment comment-directive dead dead-elsewhere dead-test
    docs-folder docs-service header layer-dots layer-grpc layer-hiredis layer-log layer-service layer-up
    numerics-contract numerics-engine numerics-fast-math numerics-libm size-file size-function test-name
    test-path xadd xadd-script)
  add_test(NAME tidy/${case} COMMAND ${CMAKE_SOURCE_DIR}/tests/tidy/run.sh $<TARGET_FILE:fx_tidy>
    ${case})
  set_tests_properties(tidy/${case} PROPERTIES LABELS tidy TIMEOUT 60)
endforeach()
