add_library(fx_test_queue STATIC integ/queue/rig.c integ/queue/invariants.c integ/queue/reader.c integ/queue/redis_fixture.c)
target_link_libraries(fx_test_queue PUBLIC fx_queue cmocka)
foreach(test IN ITEMS append cancel crash damage describe dispatch finish logprobs pull random reclaim redis redis_tls renew restore silence
        stats submit watch)
  fx_add_test(integ/queue/test_${test}.c LABELS integ DEPS fx_test_queue)
endforeach()
fx_tests_wait(20 integ/queue/test_redis integ/queue/test_redis_tls integ/queue/test_silence)
