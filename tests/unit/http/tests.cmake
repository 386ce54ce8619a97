# tests of common/http
foreach(name IN ITEMS wire stream limits cors json admin listen problem tls)
  if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/test_${name}.c)
    fx_add_test(unit/http/test_${name}.c LABELS unit DEPS fx_http)
  endif()
endforeach()
fx_tests_wait(4 unit/http/test_limits unit/http/test_stream)
