foreach(name IN ITEMS options progress settings sse sse_limits terminal top_table)
  fx_add_test(unit/cli/test_${name}.c LABELS unit DEPS fx_svc_cli)
endforeach()
