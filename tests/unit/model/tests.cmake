include(${CMAKE_CURRENT_LIST_DIR}/text_tests.cmake)
