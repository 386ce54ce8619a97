fx_add_test(unit/queue/test_url.c LABELS unit DEPS fx_queue)
