#include "services/tenant/op.h"

#define HANDLER(name, begin, start)                                                                \
    static void name(fx_call *call, const void *request, void *app) {                              \
        begin(call, request, app, start);                                                          \
    }
HANDLER(create_tenant, op_begin_admin, tenants_create)
HANDLER(get_tenant, op_begin_admin, tenants_get)
HANDLER(list_tenants, op_begin_admin, tenants_list)
HANDLER(create_key, op_begin_admin, keys_create)
HANDLER(revoke_key, op_begin_admin, keys_revoke)
HANDLER(list_keys, op_begin_admin, keys_list)
HANDLER(set_limits, op_begin_admin, limits_set)
HANDLER(authenticate, op_begin, keys_authenticate)

const struct fx_method tenant_methods[] = {
    {"/fractal.v1.TenantService/CreateTenant", create_tenant,
     &fractal__v1__create_tenant_request__descriptor,                                                      FX_RPC_UNARY, 5000, 1024},
    {"/fractal.v1.TenantService/GetTenant",    get_tenant,
     &fractal__v1__get_tenant_request__descriptor,                                                         FX_RPC_UNARY, 5000, 1024},
    {"/fractal.v1.TenantService/ListTenants",  list_tenants,
     &fractal__v1__list_tenants_request__descriptor,                                                       FX_RPC_UNARY, 5000, 1024},
    {"/fractal.v1.TenantService/CreateKey",    create_key,
     &fractal__v1__create_key_request__descriptor,                                                         FX_RPC_UNARY, 5000, 1024},
    {"/fractal.v1.TenantService/RevokeKey",    revoke_key,
     &fractal__v1__revoke_key_request__descriptor,                                                         FX_RPC_UNARY, 5000, 1024},
    {"/fractal.v1.TenantService/ListKeys",     list_keys,     &fractal__v1__list_keys_request__descriptor,
     FX_RPC_UNARY,                                                                                                       5000, 1024},
    {"/fractal.v1.TenantService/SetLimits",    set_limits,
     &fractal__v1__set_limits_request__descriptor,                                                         FX_RPC_UNARY, 5000, 1024},
    {"/fractal.v1.TenantService/Authenticate", authenticate,
     &fractal__v1__authenticate_request__descriptor,                                                       FX_RPC_UNARY, 5000, 1024},
};
const size_t tenant_method_count = FX_COUNT(tenant_methods);
_Static_assert(FX_COUNT(tenant_methods) <= FX_METHODS_MAX, "raise FX_METHODS_MAX");
