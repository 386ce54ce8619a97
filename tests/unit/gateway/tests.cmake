# tests of services/gateway
foreach(name IN ITEMS config key limit_headers places prompt request rpc_errors rpc_request shapes telemetry_json)
  fx_add_test(unit/gateway/test_${name}.c LABELS unit DEPS fx_svc_gateway)
endforeach()
