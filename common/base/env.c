#include "common/base/env.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static bool is_known(const char *entry, size_t len) {
    for (const char *const *name = fx_env_names; *name; name++)
        if (strlen(*name) == len && memcmp(*name, entry, len) == 0) return true;
    return false;
}

static FX_MUST bool check_unknown(fx_error *err) {
    for (char **entry = environ; entry && *entry; entry++) {
        size_t len = strcspn(*entry, "=");
        if (strncmp(*entry, "FX_", 3) == 0 && !is_known(*entry, len))
            return fx_fail(err, FX_INVALID_ARGUMENT,
                           "%.*s: no program of Fractal reads it; --help lists the variables",
                           (int)len, *entry);
    }
    return true;
}

static FX_MUST bool parse_number(const struct fx_env_row *row, const char *text, uint64_t *out,
                                 fx_error *err) {
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value < row->min || value > row->max)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%s='%s': want a number from %llu to %llu",
                       row->name, text, (unsigned long long)row->min, (unsigned long long)row->max);
    *out = value;
    return true;
}

static FX_MUST bool parse_bool(const struct fx_env_row *row, const char *text, bool *out,
                               fx_error *err) {
    bool yes = strcmp(text, "1") == 0 || strcmp(text, "true") == 0;
    bool no = strcmp(text, "0") == 0 || strcmp(text, "false") == 0;
    if (!yes && !no)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%s='%s': want 0 or 1", row->name, text);
    *out = yes;
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

static FX_MUST bool load_row(const struct fx_env_row *row, void *config, fx_error *err) {
    uint8_t *field = (uint8_t *)config + row->offset;
    const char *text = getenv(row->name);
    uint64_t number = 0;
    if (!text || !*text) text = row->fallback;
    if (!text) return fx_fail(err, FX_INVALID_ARGUMENT, "%s is not set: %s", row->name, row->help);
    switch (row->type) {
    case FX_ENV_CHOICE:
        if (!is_choice(row->choices, text))
            return fx_fail(err, FX_INVALID_ARGUMENT, "%s='%s': want one of %s", row->name, text,
                           row->choices);
        *(const char **)(void *)field = text;
        return true;
    case FX_ENV_TEXT: *(const char **)(void *)field = text; return true;
    case FX_ENV_BOOL: return parse_bool(row, text, (bool *)field, err);
    case FX_ENV_U64: return parse_number(row, text, (uint64_t *)(void *)field, err);
    case FX_ENV_U32:
        if (!parse_number(row, text, &number, err)) return false;
        *(uint32_t *)(void *)field = (uint32_t)number;
        return true;
    }
    return fx_fail(err, FX_INTERNAL, "%s: row without a type", row->name);
}

bool fx_env_load(const struct fx_env_row *rows, size_t count, void *config, fx_error *err) {
    if (!check_unknown(err)) return false;
    for (size_t i = 0; i < count; i++)
        if (!load_row(&rows[i], config, err)) return false;
    return true;
}

const char *fx_env_text(const struct fx_env_row *rows, size_t count, const char *name) {
    const char *text = getenv(name);
    for (size_t i = 0; (!text || !*text) && i < count; i++)
        if (strcmp(rows[i].name, name) == 0) text = rows[i].fallback;
    return text;
}

void fx_env_help(const char *program, const char *what, const struct fx_env_row *rows, size_t count,
                 const char *more) {
    (void)printf("%s %s: %s\n\nConfiguration is by environment only:\n", program, FX_VERSION, what);
    for (size_t i = 0; i < count; i++) {
        const char *fallback = rows[i].fallback ? rows[i].fallback : "(must be set)";
        (void)printf("  %-24s %s\n  %24s default: %s", rows[i].name, rows[i].help, "",
                     *fallback ? fallback : "(empty)");
        if (rows[i].type == FX_ENV_CHOICE) (void)printf("; one of %s", rows[i].choices);
        if (rows[i].type == FX_ENV_U32 || rows[i].type == FX_ENV_U64)
            (void)printf("; %llu to %llu", (unsigned long long)rows[i].min,
                         (unsigned long long)rows[i].max);
        (void)printf("\n");
    }
    (void)printf("%s", more);
}
