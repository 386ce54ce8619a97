#include <string.h>
#include "fractal/v1/tenant.pb-c.h"
#include "services/cli/admin.h"

enum { PAGE_SIZE = 1000, PAGES_MAX = 1000 };

struct tenants_args {
    struct cli_u64 weight;
    const char *name;
};

static const struct cli_option options[] = {
    {"weight", CLI_U64, offsetof(struct tenants_args, weight), 1, 1000, "W", NULL,
     "share of a new tenant when workers are busy (1)"},
};

static bool create(const struct cli_settings *settings, fx_arena *arena, const void *user,
                   fx_error *err) {
    const struct tenants_args *args = user;
    if (!cli_admin_create_tenant(settings, args->name, (uint32_t)args->weight.value, arena, err))
        return false;
    (void)printf("created %s; ./fractal keys create --tenant %s makes a key\n", args->name,
                 args->name);
    return true;
}

static FX_MUST bool list_page(const struct cli_settings *settings, fx_arena *arena, char *token,
                              Fractal__V1__ListTenantsReply **out, fx_error *err) {
    Fractal__V1__ListTenantsRequest message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    message.page_size = PAGE_SIZE;
    message.page_token = token;
    return cli_admin_call(settings, "ListTenants", &message,
                          &fractal__v1__list_tenants_reply__descriptor, arena, out, err);
}

static bool list(const struct cli_settings *settings, fx_arena *arena, const void *user,
                 fx_error *err) {
    char token[256] = "";
    (void)user;
    for (int page = 0; page < PAGES_MAX; page++) {
        Fractal__V1__ListTenantsReply *reply = NULL;
        fx_arena_reset(arena);
        if (!list_page(settings, arena, token, &reply, err)) return false;
        if (!page && reply->n_tenants) (void)printf("%-32s %8s %6s\n", "NAME", "NUMBER", "WEIGHT");
        for (size_t i = 0; i < reply->n_tenants; i++)
            (void)printf("%-32s %8llu %6u\n", reply->tenants[i]->name,
                         (unsigned long long)reply->tenants[i]->number, reply->tenants[i]->weight);
        if (!*reply->next_page_token) return true;
        (void)snprintf(token, sizeof token, "%s", reply->next_page_token);
    }
    return fx_fail(err, FX_RESOURCE_EXHAUSTED, "more than %d pages of tenants", PAGES_MAX);
}

static int run(const struct cli_settings *settings, int argc, char **argv) {
    struct tenants_args args = {0};
    fx_error err = {0};
    int left = cli_options(options, FX_COUNT(options), argc, argv, &args, &err);
    if (left == 1 && strcmp(argv[0], "list") == 0) return cli_admin_run(settings, list, &args);
    if (left == 2 && strcmp(argv[0], "create") == 0) {
        args.name = argv[1];
        return cli_admin_run(settings, create, &args);
    }
    if (left >= 0) fx_error_set(&err, FX_INVALID_ARGUMENT, "want create NAME or list");
    return cli_misused(&cli_tenants, &err);
}

const struct cli_command cli_tenants = {
    .name = "tenants",
    .usage = "create NAME [--weight W] | list",
    .summary = "The tenants that share this suite",
    .options = options,
    .option_count = FX_COUNT(options),
    .run = run,
};
