# llhttp: target fx_llhttp. Debian 12 has no libllhttp, but package node-llhttp ships the C source.
find_path(LLHTTP_INCLUDE_DIR llhttp.h PATH_SUFFIXES llhttp PATHS /usr/share/include)
find_path(LLHTTP_SOURCE_DIR llhttp.c PATH_SUFFIXES llhttp PATHS /usr/share)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Llhttp REQUIRED_VARS LLHTTP_INCLUDE_DIR LLHTTP_SOURCE_DIR)
mark_as_advanced(LLHTTP_INCLUDE_DIR LLHTTP_SOURCE_DIR)

if(Llhttp_FOUND AND NOT TARGET fx_llhttp)
  add_library(fx_llhttp STATIC ${LLHTTP_SOURCE_DIR}/llhttp.c ${LLHTTP_SOURCE_DIR}/api.c
    ${LLHTTP_SOURCE_DIR}/http.c)
  target_compile_options(fx_llhttp PRIVATE -w $<$<BOOL:${FX_FUZZ}>:-fsanitize=fuzzer-no-link>)
  target_compile_definitions(fx_llhttp PUBLIC LLHTTP_STRICT_MODE=1)
  target_include_directories(fx_llhttp SYSTEM PUBLIC ${LLHTTP_INCLUDE_DIR})
endif()
