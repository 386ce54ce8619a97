foreach(test IN ITEMS url url_hosts)
  fx_add_test(unit/queue/test_${test}.c LABELS unit DEPS fx_queue)
endforeach()
