#include <string.h>
#include "services/cli/cli.h"

static int run_logits(const struct cli_settings *settings, int argc, char **argv) {
    (void)settings;
    return fx_cli_logits(argc + 1, argv - 1);
}

static const struct cli_command logits = {
    .name = "logits",
    .usage = "MODEL --ids 1,2,3 [OPTIONS]",
    .summary = "f32 logits of every position, by the engine without services",
    .run = run_logits,
    .raw = true,
};

static const struct cli_command *const commands[] = {
    &cli_chat, &cli_top, &cli_models, &cli_import, &cli_keys, &cli_tenants, &cli_secret, &logits,
};

static const struct cli_command *find(const char *name) {
    for (size_t i = 0; i < FX_COUNT(commands); i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

static void show_option(const struct cli_option *option) {
    char left[64];
    (void)snprintf(left, sizeof left, "--%s %s", option->name, option->placeholder);
    (void)printf("  %-22s %s\n", left, option->help);
}

static int show_help(const struct cli_command *command) {
    (void)printf("usage: fractal %s %s\n\n%s.\n", command->name, command->usage, command->summary);
    if (command->option_count) (void)printf("\n");
    for (size_t i = 0; i < command->option_count; i++)
        show_option(&command->options[i]);
    if (command->more) (void)printf("\n%s\n", command->more);
    return CLI_OK;
}

static int show_usage(FILE *out) {
    (void)fprintf(out, "usage: fractal COMMAND [OPTIONS]\n\n");
    for (size_t i = 0; i < FX_COUNT(commands); i++)
        (void)fprintf(out, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    (void)fprintf(out, "\n`fractal COMMAND --help` shows its options.\n");
    return out == stdout ? CLI_OK : CLI_USAGE;
}

static bool is_help(const char *text) {
    return strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0 || strcmp(text, "help") == 0;
}

/* --help anywhere before "--". */
static bool wants_help(int argc, char **argv) {
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

int cli_failed(const fx_error *err) {
    (void)fflush(stdout);
    (void)fprintf(stderr, "fractal: %s\n", err->text);
    return CLI_FAILED;
}

int cli_misused(const struct cli_command *command, const fx_error *err) {
    (void)fprintf(stderr, "fractal %s: %s\nusage: fractal %s %s\n", command->name, err->text,
                  command->name, command->usage);
    return CLI_USAGE;
}

static int show_main_help(void) {
    (void)show_usage(stdout);
    (void)printf("\n");
    fx_env_help("fractal-cli", "the client commands of ./fractal", cli_env, cli_env_count, "");
    return CLI_OK;
}

int cli_run(int argc, char **argv) {
    struct cli_settings settings = {0};
    fx_error err = {0};
    if (argc == 0) return show_usage(stderr);
    if (is_help(argv[0])) return show_main_help();
    const struct cli_command *command = find(argv[0]);
    if (!command) {
        (void)fprintf(stderr, "fractal: no command '%s'\n\n", argv[0]);
        return show_usage(stderr);
    }
    bool help = wants_help(argc - 1, argv + 1);
    if (help && !command->raw) return show_help(command);
    if (!help && !cli_settings_load(&settings, &err)) return cli_failed(&err);
    return command->run(&settings, argc - 1, argv + 1);
}
