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
