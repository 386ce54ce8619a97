#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "services/cli/cli.h"

static const struct cli_option *find(const struct cli_option *options, size_t count,
                                     const char *name, size_t len) {
    for (size_t i = 0; i < count; i++)
        if (strlen(options[i].name) == len && memcmp(options[i].name, name, len) == 0)
            return &options[i];
    return NULL;
}

static FX_MUST bool parse_u64(const struct cli_option *option, const char *text,
                              struct cli_u64 *out, fx_error *err) {
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || (double)value < option->min ||
        (double)value > option->max)
        return fx_fail(err, FX_INVALID_ARGUMENT, "--%s '%s': want a whole number from %.0f to %.0f",
                       option->name, text, option->min, option->max);
    *out = (struct cli_u64){value, true};
    return true;
}

static FX_MUST bool parse_real(const struct cli_option *option, const char *text,
                               struct cli_real *out, fx_error *err) {
    char *end = NULL;
    double value = strtod(text, &end);
    bool begins = (*text >= '0' && *text <= '9') || *text == '.' || *text == '-';
    if (!begins || *end || !(value >= option->min && value <= option->max))
        return fx_fail(err, FX_INVALID_ARGUMENT, "--%s '%s': want a number from %g to %g",
                       option->name, text, option->min, option->max);
    *out = (struct cli_real){value, true};
    return true;
}

static bool is_choice(const char *choices, const char *text) {
    size_t len = strlen(text);
    for (const char *at = choices;; at++) {
        size_t span = strcspn(at, "|");
        if (span == len && memcmp(at, text, len) == 0) return true;
        at += span;
        if (!*at) return false;
    }
}

static FX_MUST bool set(const struct cli_option *option, const char *text, void *into,
                        fx_error *err) {
    void *field = (char *)into + option->offset;
    switch (option->type) {
    case CLI_U64: return parse_u64(option, text, field, err);
    case CLI_REAL: return parse_real(option, text, field, err);
    case CLI_ONE_OF:
        if (!is_choice(option->choices, text))
            return fx_fail(err, FX_INVALID_ARGUMENT, "--%s '%s': want one of %s", option->name,
                           text, option->choices);
        *(const char **)field = text;
        return true;
    case CLI_TEXT: *(const char **)field = text; return true;
    case CLI_FLAG: *(bool *)field = true; return true;
    }
    return fx_fail(err, FX_INTERNAL, "--%s: option without a type", option->name);
}

/* One option at argv[*at]; moves *at past it. */
static FX_MUST bool take(const struct cli_option *options, size_t count, int argc, char **argv,
                         int *at, void *into, fx_error *err) {
    const char *name = argv[*at] + 2, *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const struct cli_option *option = find(options, count, name, len);
    if (!option)
        return fx_fail(err, FX_INVALID_ARGUMENT, "unknown option '%.*s'", (int)len + 2, argv[*at]);
    if (option->type == CLI_FLAG && equals)
        return fx_fail(err, FX_INVALID_ARGUMENT, "--%s takes no value", option->name);
    if (!equals && option->type != CLI_FLAG && ++*at == argc)
        return fx_fail(err, FX_INVALID_ARGUMENT, "--%s needs a value", option->name);
    const char *value = equals ? equals + 1 : argv[*at];
    ++*at;
    return set(option, value, into, err);
}

int cli_options(const struct cli_option *options, size_t count, int argc, char **argv, void *into,
                fx_error *err) {
    int kept = 0;
    bool ended = false;
    for (int at = 0; at < argc;) {
        bool is_option = !ended && argv[at][0] == '-' && argv[at][1];
        if (is_option && strcmp(argv[at], "--") == 0) {
            ended = true;
            at++;
        } else if (is_option && argv[at][1] != '-') {
            fx_error_set(err, FX_INVALID_ARGUMENT, "unknown option '%s'", argv[at]);
            return -1;
        } else if (is_option) {
            if (!take(options, count, argc, argv, &at, into, err)) return -1;
        } else {
            argv[kept++] = argv[at++];
        }
    }
    return kept;
}
