# fx_flags: what every target of ours compiles with.
add_library(fx_flags INTERFACE)
target_compile_options(fx_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  -Wstrict-prototypes -Wmissing-prototypes -Wvla -ffp-contract=off -fno-math-errno
  $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation> # a text that is cut is cut on purpose
  $<$<BOOL:${FX_WERROR}>:-Werror>)
target_compile_definitions(fx_flags INTERFACE _GNU_SOURCE FX_VERSION="${PROJECT_VERSION}")
target_include_directories(fx_flags INTERFACE ${CMAKE_SOURCE_DIR})
if(FX_FUZZ)
  target_compile_options(fx_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(FX_SANITIZE)
  target_compile_options(fx_flags INTERFACE -fsanitize=${FX_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer -g)
  target_link_options(fx_flags INTERFACE -fsanitize=${FX_SANITIZE})
endif()

# fx_add_library(NAME SOURCES a.c b.c DEPS other ...)
function(fx_add_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC fx_flags ${arg_DEPS})
endfunction()

# fx_add_service(NAME SOURCES main.c ... DEPS fx_rpc ...): the program fractal-NAME in build/bin.
# Its sources but main.c also make the library fx_svc_NAME, which its unit tests link.
function(fx_add_service name)
  cmake_parse_arguments(arg "" "PROGRAM" "SOURCES;DEPS" ${ARGN})
  set(program fractal-${name})
  if(arg_PROGRAM)
    set(program ${arg_PROGRAM})
  endif()
  list(REMOVE_ITEM arg_SOURCES main.c)
  if(arg_SOURCES)
    fx_add_library(fx_svc_${name} SOURCES ${arg_SOURCES} DEPS ${arg_DEPS})
    set(arg_DEPS fx_svc_${name} ${arg_DEPS})
  endif()
  add_executable(${program} main.c)
  target_link_libraries(${program} PRIVATE fx_flags ${arg_DEPS})
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

# fx_add_test(path/test_x.c LABELS unit [TIMEOUT s] [DEPS fx_base ...] [BY script] [ARGS ...]
#   [LINK opts])
# One binary a file; the test's name is the path without .c. ./fractal test runs ctest with twice as
# many jobs as there are cores, and a test takes two of them. The target `checks` builds what runs
# under sanitizers.
function(fx_add_test source)
  cmake_parse_arguments(arg "" "TIMEOUT;BY" "LABELS;DEPS;ARGS;LINK;ENV" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  string(REGEX REPLACE "\\.c$" "" test_name ${source})
  string(REPLACE "/" "_" target ${test_name})
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE fx_flags ${arg_DEPS} cmocka)
  target_link_options(${target} PRIVATE ${arg_LINK})
  target_compile_definitions(${target} PRIVATE FX_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    FX_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${test_name} COMMAND ${arg_BY} $<TARGET_FILE:${target}> ${arg_ARGS})
  set_tests_properties(${test_name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT "${arg_ENV}" PROCESSORS 2)
  if("${arg_LABELS}" MATCHES "^(unit|golden|integ)$")
    fx_add_check(${target})
  endif()
endfunction()

function(fx_add_check target)
  if(NOT TARGET checks)
    add_custom_target(checks)
  endif()
  add_dependencies(checks ${target})
endfunction()

# fx_tests_wait(SECONDS name ...): tests that merely wait for most of these seconds take one job, and
# begin early.
function(fx_tests_wait seconds)
  set_tests_properties(${ARGN} PROPERTIES PROCESSORS 1 COST ${seconds})
endfunction()

# fx_add_fuzzer(fuzz/x_fuzz.c [SOURCES more.c] [SECONDS s] DEPS fx_base ...): LLVMFuzzerTestOneInput of
# tests/fuzz/fuzz.h over the seeds in tests/fuzz/corpus/x and the words of tests/fuzz/x.dict. In the
# fuzz preset a libFuzzer program, whose test is SECONDS of new input; everywhere else a test that
# replays the corpus. ./fractal test fuzz-long reads the names from tests/x_fuzz in the build folder.
function(fx_add_fuzzer source)
  cmake_parse_arguments(arg "" "SECONDS" "SOURCES;DEPS" ${ARGN})
  get_filename_component(target ${source} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" seed ${target})
  set(corpus ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${seed})
  add_executable(${target} ${source} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE fx_flags ${arg_DEPS})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(FX_FUZZ)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    if(NOT arg_SECONDS)
      set(arg_SECONDS 15)
    endif()
    add_test(NAME fuzz/${target} COMMAND ${CMAKE_SOURCE_DIR}/tests/fuzz/run.sh ${CMAKE_BINARY_DIR}
      ${seed} ${arg_SECONDS})
    if(NOT TARGET fuzzers)
      add_custom_target(fuzzers)
    endif()
    add_dependencies(fuzzers ${target})
  else()
    target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.c)
    add_test(NAME fuzz/${target} COMMAND ${target} ${corpus})
    fx_add_check(${target})
  endif()
  set_tests_properties(fuzz/${target} PROPERTIES LABELS fuzz TIMEOUT 120 PROCESSORS 2)
endfunction()
