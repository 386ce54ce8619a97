#include <string.h>
#include <time.h>
#include "services/cli/admin.h"
#include "services/cli/secret.h"

#define DEFAULT_TENANT "default"

struct keys_args {
    const char *tenant, *label, *into;
    const char *key_id; /* limit, revoke */
    struct cli_limits limits;
};

static const struct cli_option options[] = {
    {"tenant", CLI_TEXT, offsetof(struct keys_args, tenant), 0, 0, "T",    NULL,
     "whose keys (" DEFAULT_TENANT ")"                            },
    {"label",  CLI_TEXT, offsetof(struct keys_args, label),  0, 0, "L",    NULL,
     "of a new key, to tell it from others"                       },
    {"into",   CLI_TEXT, offsetof(struct keys_args, into),   0, 0, "FILE", NULL,
     "a new key into a new file of mode 0600, not to the terminal"},
    CLI_LIMIT(struct keys_args, rpm, 1e9, "requests a minute"),
    CLI_LIMIT(struct keys_args, tpm, 1e9, "tokens a minute, prompts and answers"),
    CLI_LIMIT(struct keys_args, streams, 1e6, "generations at the same time"),
};

static FX_MUST bool create_once(const struct cli_settings *settings, const struct keys_args *args,
                                fx_arena *arena, Fractal__V1__CreateKeyReply **out, fx_error *err) {
    Fractal__V1__CreateKeyRequest message = FRACTAL__V1__CREATE_KEY_REQUEST__INIT;
    message.tenant = fx_arena_copy(arena, fx_span_str(args->tenant));
    message.label = fx_arena_copy(arena, fx_span_str(args->label ? args->label : ""));
    Fractal__V1__Limits limits = cli_limits_message(&args->limits);
    message.limits = &limits;
    if (!message.tenant || !message.label)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a call");
    return cli_admin_call(settings, "CreateKey", &message,
                          &fractal__v1__create_key_reply__descriptor, arena, out, err);
}

/* Only the default tenant comes into being by itself; a misspelt one does not. */
static FX_MUST bool create_tenant(const struct cli_settings *settings, const struct keys_args *args,
                                  fx_arena *arena, fx_error *err) {
    if (strcmp(args->tenant, DEFAULT_TENANT) != 0)
        return fx_fail(err, FX_NOT_FOUND, "no tenant '%s' (./fractal tenants create %s)",
                       args->tenant, args->tenant);
    bool created = cli_admin_create_tenant(settings, args->tenant, 0, NULL, arena, err);
    if (!created && err->code != FX_ALREADY_EXISTS) return false;
    if (created) (void)fprintf(stderr, "created the tenant '%s'\n", args->tenant);
    return true;
}

static FX_MUST bool deliver(const Fractal__V1__CreateKeyReply *reply, const struct keys_args *args,
                            fx_error *err) {
    if (args->into) return cli_secret_write(args->into, reply->key, err);
    (void)printf("%s\n", reply->key);
    (void)fflush(stdout);
    (void)fprintf(stderr, "key id %s, tenant '%s'; the key is shown this once\n", reply->key_id,
                  args->tenant);
    return true;
}

static bool create(const struct cli_settings *settings, fx_arena *arena, const void *user,
                   fx_error *err) {
    const struct keys_args *args = user;
    Fractal__V1__CreateKeyReply *reply = NULL;
    bool ok = create_once(settings, args, arena, &reply, err);
    if (!ok && err->code == FX_NOT_FOUND)
        ok = create_tenant(settings, args, arena, err) &&
             create_once(settings, args, arena, &reply, err);
    if (!ok) return false;
    return deliver(reply, args, err);
}

static void show(const Fractal__V1__Key *key) {
    char date[32] = "-", limits[CLI_LIMITS_TEXT];
    time_t created = (time_t)(key->created_ms / 1000);
    struct tm at;
    if (localtime_r(&created, &at)) (void)strftime(date, sizeof date, "%Y-%m-%d %H:%M", &at);
    (void)printf("%-16s  %-8s %-16s  %-24s  %s\n", key->key_id, key->revoked ? "revoked" : "active",
                 date, cli_limits_text(key->limits, limits), key->label);
}

static bool list(const struct cli_settings *settings, fx_arena *arena, const void *user,
                 fx_error *err) {
    const struct keys_args *args = user;
    Fractal__V1__ListKeysRequest message = FRACTAL__V1__LIST_KEYS_REQUEST__INIT;
    Fractal__V1__ListKeysReply *reply = NULL;
    message.tenant = fx_arena_copy(arena, fx_span_str(args->tenant));
    if (!message.tenant) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a call");
    if (!cli_admin_call(settings, "ListKeys", &message, &fractal__v1__list_keys_reply__descriptor,
                        arena, &reply, err))
        return false;
    if (reply->n_keys)
        (void)printf("%-16s  %-8s %-16s  %-24s  %s\n", "KEY ID", "STATE", "CREATED", "LIMITS",
                     "LABEL");
    for (size_t i = 0; i < reply->n_keys; i++)
        show(reply->keys[i]);
    return true;
}

static bool limit(const struct cli_settings *settings, fx_arena *arena, const void *user,
                  fx_error *err) {
    const struct keys_args *args = user;
    char text[CLI_LIMITS_TEXT];
    if (!cli_admin_set_limits(settings, args->key_id, NULL, &args->limits, arena, err))
        return false;
    Fractal__V1__Limits limits = cli_limits_message(&args->limits);
    (void)printf("limits of %s: %s\n", args->key_id, cli_limits_text(&limits, text));
    return true;
}

static bool revoke(const struct cli_settings *settings, fx_arena *arena, const void *user,
                   fx_error *err) {
    const struct keys_args *args = user;
    Fractal__V1__RevokeKeyRequest message = FRACTAL__V1__REVOKE_KEY_REQUEST__INIT;
    Fractal__V1__RevokeKeyReply *reply = NULL;
    message.key_id = fx_arena_copy(arena, fx_span_str(args->key_id));
    if (!message.key_id) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a call");
    if (!cli_admin_call(settings, "RevokeKey", &message, &fractal__v1__revoke_key_reply__descriptor,
                        arena, &reply, err))
        return false;
    (void)printf("revoked %s\n", args->key_id);
    return true;
}

static const struct {
    const char *name;
    int arguments; /* after the name */
    bool (*action)(const struct cli_settings *settings, fx_arena *arena, const void *args,
                   fx_error *err);
} actions[] = {
    {"create", 0, create},
    {"limit",  1, limit },
    {"list",   0, list  },
    {"revoke", 1, revoke},
};

static int run(const struct cli_settings *settings, int argc, char **argv) {
    struct keys_args args = {.tenant = DEFAULT_TENANT};
    fx_error err = {0};
    int left = cli_options(options, FX_COUNT(options), argc, argv, &args, &err);
    for (size_t i = 0; left > 0 && i < FX_COUNT(actions); i++) {
        if (strcmp(argv[0], actions[i].name) != 0) continue;
        if (left - 1 != actions[i].arguments) break;
        args.key_id = argv[1];
        return cli_admin_run(settings, actions[i].action, &args);
    }
    if (left >= 0)
        fx_error_set(&err, FX_INVALID_ARGUMENT, "want create, list, limit ID or revoke ID");
    return cli_misused(&cli_keys, &err);
}

const struct cli_command cli_keys = {
    .name = "keys",
    .usage =
        "create [--tenant T] [--label L] [--rpm N] [--tpm N] [--streams N] | list [--tenant T] | "
        "limit ID [--rpm N] [--tpm N] [--streams N] | revoke ID",
    .summary = "Tenants' API keys",
    .options = options,
    .option_count = FX_COUNT(options),
    .run = run,
    .more = "A new key is printed once, alone on standard output; only its SHA-256 is stored.\n"
            "`limit` replaces all three limits; those left out are none.",
};
