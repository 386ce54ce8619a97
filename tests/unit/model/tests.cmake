include(${CMAKE_CURRENT_LIST_DIR}/text_tests.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/store_tests.cmake)
