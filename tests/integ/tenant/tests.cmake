foreach(test IN ITEMS tenant tenant_faults tenant_limits)
  fx_add_test(integ/tenant/test_${test}.c LABELS integ DEPS fx_test_queue fx_rpc)
  add_dependencies(integ_tenant_test_${test} fractal-tenant)
endforeach()
