#pragma once
#include <stdio.h>
#include "common/base/env.h"
#include "common/base/error.h"

/** The client commands of ./fractal. Everything here runs on main's thread. */

enum {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_CANCELLED = 130, /* by Ctrl-C */
    CLI_SECRET_MAX = 256,
    CLI_URL_MAX = 256,
    CLI_GATEWAYS_MAX = 8,
    CLI_PATH_MAX = 4096,
};

/** From the environment (settings.c has the table). */
struct cli_settings {
    const char *data_dir, *token_file, *gateway_url, *http_addr, *api_key;
    const char *tenant_addr, *slicer_addr;
    const char *tls_ca, *tls_cert, *tls_key;
};
extern const struct fx_env_row cli_env[];
extern const size_t cli_env_count;
FX_MUST bool cli_settings_load(struct cli_settings *settings, fx_error *err);
/** Base URLs of the gateways, without a slash at the end: any of them will do. */
struct cli_gateways {
    char url[CLI_GATEWAYS_MAX][CLI_URL_MAX];
    uint32_t count; /* 1.. */
};
FX_MUST bool cli_gateways_read(const struct cli_settings *settings, struct cli_gateways *out,
                               fx_error *err);
/** The tenant key: FX_API_KEY, else the data folder's api-key.
 *  @err FAILED_PRECONDITION naming the remedy */
FX_MUST bool cli_api_key(const struct cli_settings *settings, char out[CLI_SECRET_MAX],
                         fx_error *err);
/** The bootstrap token. @err FAILED_PRECONDITION naming the remedy */
FX_MUST bool cli_bootstrap_token(const struct cli_settings *settings, char out[CLI_SECRET_MAX],
                                 fx_error *err);

enum cli_type { CLI_TEXT, CLI_U64, CLI_REAL, CLI_ONE_OF, CLI_FLAG };

/** An option of one command: --name VALUE or --name=VALUE, into the field at `offset`; a flag is
 *  just --name. */
struct cli_option {
    const char *name; /* without the dashes */
    enum cli_type type;
    size_t offset; /* of a const char *, struct cli_u64, struct cli_real, bool (a flag) */
    double min, max;
    const char *placeholder, *choices, *help;
};
/** A number that may be left out. */
struct cli_u64 {
    uint64_t value;
    bool given;
};
struct cli_real {
    double value;
    bool given;
};

/** Reads options into `into` and moves the other arguments to the front of argv; "--" ends the
 *  options. Returns their number, or -1 with `err` set. */
int cli_options(const struct cli_option *options, size_t count, int argc, char **argv, void *into,
                fx_error *err);

/** One row of the subcommand table. `run` gets the arguments after the command's name and returns
 *  an exit status. */
struct cli_command {
    const char *name, *usage, *summary;
    const struct cli_option *options;
    size_t option_count;
    int (*run)(const struct cli_settings *settings, int argc, char **argv);
    bool raw;         /* reads its options itself */
    const char *more; /* shown by --help, or NULL */
};
/** Finds and runs a command; prints help and usage errors. Returns the exit status. */
int cli_run(int argc, char **argv);

/** "fractal: text" on stderr; returns CLI_FAILED. */
int cli_failed(const fx_error *err);
/** The same for a wrong command line; names the help. Returns CLI_USAGE. */
int cli_misused(const struct cli_command *command, const fx_error *err);

extern const struct cli_command cli_chat, cli_models, cli_import, cli_keys, cli_tenants, cli_top,
    cli_secret;

/** logits.c: the engine alone; argv[0] is "logits". */
int fx_cli_logits(int argc, char **argv);
