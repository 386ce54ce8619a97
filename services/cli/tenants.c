#include <string.h>
#include "services/cli/admin.h"

enum { PAGE_SIZE = 1000, PAGES_MAX = 1000 };

struct tenants_args {
    struct cli_u64 weight;
    struct cli_limits limits;
    const char *name;
};

static const struct cli_option options[] = {
    {"weight", CLI_U64, offsetof(struct tenants_args, weight), 1, 1000, "W", NULL,
     "share of a new tenant when workers are busy (1)"},
    CLI_LIMIT(struct tenants_args, rpm, 1e9, "requests a minute"),
    CLI_LIMIT(struct tenants_args, tpm, 1e9, "tokens a minute, prompts and answers"),
    CLI_LIMIT(struct tenants_args, streams, 1e6, "generations at the same time"),
};

static bool create(const struct cli_settings *settings, fx_arena *arena, const void *user,
                   fx_error *err) {
    const struct tenants_args *args = user;
    if (!cli_admin_create_tenant(settings, args->name, (uint32_t)args->weight.value, &args->limits,
                                 arena, err))
        return false;
    (void)printf("created %s; ./fractal keys create --tenant %s makes a key\n", args->name,
                 args->name);
    return true;
}

static bool limit(const struct cli_settings *settings, fx_arena *arena, const void *user,
                  fx_error *err) {
    const struct tenants_args *args = user;
    char text[CLI_LIMITS_TEXT];
    if (!cli_admin_set_limits(settings, NULL, args->name, &args->limits, arena, err)) return false;
    Fractal__V1__Limits limits = cli_limits_message(&args->limits);
    (void)printf("limits of %s: %s\n", args->name, cli_limits_text(&limits, text));
    return true;
}

static void show(const Fractal__V1__Tenant *tenant) {
    char limits[CLI_LIMITS_TEXT];
    (void)printf("%-32s %8llu %6u  %s\n", tenant->name, (unsigned long long)tenant->number,
                 tenant->weight, cli_limits_text(tenant->limits, limits));
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
        if (!page && reply->n_tenants)
            (void)printf("%-32s %8s %6s  %s\n", "NAME", "NUMBER", "WEIGHT", "LIMITS");
        for (size_t i = 0; i < reply->n_tenants; i++)
            show(reply->tenants[i]);
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
    bool creates = left == 2 && strcmp(argv[0], "create") == 0;
    bool limits = left == 2 && strcmp(argv[0], "limit") == 0;
    if (creates || limits) {
        args.name = argv[1];
        return cli_admin_run(settings, creates ? create : limit, &args);
    }
    if (left >= 0) fx_error_set(&err, FX_INVALID_ARGUMENT, "want create NAME, limit NAME or list");
    return cli_misused(&cli_tenants, &err);
}

const struct cli_command cli_tenants = {
    .name = "tenants",
    .usage = "create NAME [--weight W] [--rpm N] [--tpm N] [--streams N] | list | "
             "limit NAME [--rpm N] [--tpm N] [--streams N]",
    .summary = "The tenants that share this suite",
    .options = options,
    .option_count = FX_COUNT(options),
    .run = run,
    .more = "Limits of a tenant hold for all its keys together, beside each key's own.\n"
            "`limit` replaces all three; those left out are none.",
};
