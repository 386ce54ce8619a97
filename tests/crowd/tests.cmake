# fractal-crowd: clients of a suite that runs elsewhere, in containers or a cluster. Static, so that
# it is an image by itself.
add_executable(fractal-crowd crowd/main.c crowd/client.c crowd/figures.c crowd/requests.c crowd/run.c
  crowd/texts.c e2e/http_client.c ../common/base/clock.c ../common/base/error.c)
find_library(JANSSON_STATIC_LIBRARY libjansson.a)
mark_as_advanced(JANSSON_STATIC_LIBRARY)
target_link_libraries(fractal-crowd PRIVATE fx_flags fx_llhttp)
target_include_directories(fractal-crowd PRIVATE ${JANSSON_INCLUDE_DIR})
if(JANSSON_STATIC_LIBRARY AND NOT FX_SANITIZE)
  target_link_libraries(fractal-crowd PRIVATE ${JANSSON_STATIC_LIBRARY})
  target_link_options(fractal-crowd PRIVATE -static)
else()
  target_link_libraries(fractal-crowd PRIVATE Jansson::Jansson)
endif()
set_target_properties(fractal-crowd PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# It is believed elsewhere: here it must find what is wrong.
if(NOT FX_NO_GRPC)
  fx_add_test(crowd/test_crowd.c LABELS e2e TIMEOUT 120 DEPS fx_test_suite)
  set_tests_properties(crowd/test_crowd PROPERTIES RESOURCE_LOCK e2e PROCESSORS 4)
  add_dependencies(crowd_test_crowd fractal-crowd fractal-tenant fractal-slicer fractal-scheduler
    fractal-worker fractal-gateway fractal-cli)
endif()
