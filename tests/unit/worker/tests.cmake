foreach(name IN ITEMS config figures kept status stop)
  fx_add_test(unit/worker/test_${name}.c LABELS unit DEPS fx_svc_worker)
endforeach()
