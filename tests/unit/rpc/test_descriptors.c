/* Which file declares a symbol, for reflection. */
#include "common/rpc/descriptors_internal.h"
#include "tests/fx_test.h"

struct row {
    const char *symbol, *file; /* NULL: none */
};
static const struct row rows[] = {
    {"fractal.v1.TenantService",                         "fractal/v1/tenant.proto"                 },
    {"fractal.v1.TenantService.Authenticate",            "fractal/v1/tenant.proto"                 },
    {"fractal.v1.Tenant",                                "fractal/v1/tenant.proto"                 },
    {"fractal.v1.Tenant.weight",                         "fractal/v1/tenant.proto"                 },
    {"fractal.v1.GenerationState",                       "fractal/v1/generation.proto"             },
    {"grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc/health/v1/health.proto"             },
    {"grpc.health.v1.HealthCheckResponse.status",        "grpc/health/v1/health.proto"             },
    {"grpc.reflection.v1.ServerReflection",              "grpc/reflection/v1/reflection.proto"     },
    {"grpc.reflection.v1alpha.ServerReflection",         "grpc/reflection/v1alpha/reflection.proto"},
    {"fractal.v1",                                       NULL                                      },
    {"fractal.v1.",                                      NULL                                      },
    {"",                                                 NULL                                      },
    {".",                                                NULL                                      },
    {"fractal.v1.Tenan",                                 NULL                                      },
    {"fractal.v1.Tenants",                               NULL                                      },
    {"fractal.v1.Tenant.weigh",                          NULL                                      },
    {"fractal.v1.Tenant.weight.more",                    NULL                                      },
    {"fractal.v1.TenantService.Nothing",                 NULL                                      },
    {"fractal.v2.Tenant",                                NULL                                      },
    {"Tenant",                                           NULL                                      },
};

static void test_symbol(void **state) {
    const struct row *row = *state;
    struct fx_descriptors *descriptors = NULL;
    fx_error err = {0};
    assert_true(fx_descriptors__open(&descriptors, &err));
    const struct fx_descriptor_file *file =
        fx_descriptors__by_symbol(descriptors, fx_span_str(row->symbol));
    if (!row->file) assert_null(file);
    if (row->file) {
        assert_non_null(file);
        assert_true(fx_span_eq_str(file->name, row->file));
        assert_ptr_equal(file, fx_descriptors__by_name(descriptors, fx_span_str(row->file)));
    }
    fx_descriptors__free(descriptors);
}

FX_TEST_MAIN(test_symbol, rows)
