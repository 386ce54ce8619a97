#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/error.h"

enum fx_env_type {
    FX_ENV_TEXT,   /* const char *, borrowed from the environment for ever; "" is unset */
    FX_ENV_U32,    /* uint32_t in [min, max] */
    FX_ENV_U64,    /* uint64_t in [min, max] */
    FX_ENV_BOOL,   /* bool: 0, 1, true, false */
    FX_ENV_CHOICE, /* const char *, one of `choices`, separated by '|' */
};

/** One row of a service's table. `fallback` NULL: the variable must be set. */
struct fx_env_row {
    const char *name;
    enum fx_env_type type;
    size_t offset;
    uint64_t min, max;
    const char *fallback, *choices, *help;
};

/** Reads every row into `config`. Fails naming the variable on a missing or bad value, and on an
 *  FX_* variable that no service knows (common/base/env_names.c). @thread main, once
 *  @err INVALID_ARGUMENT */
FX_MUST bool fx_env_load(const struct fx_env_row *rows, size_t count, void *config, fx_error *err);
/** One variable alone, whatever the others are: its text, else its row's fallback; NULL: neither.
 *  @thread main */
const char *fx_env_text(const struct fx_env_row *rows, size_t count, const char *name);
/** --help: prints the table to stdout, and then `more`. */
void fx_env_help(const char *program, const char *what, const struct fx_env_row *rows, size_t count,
                 const char *more);
/** Every FX_* that some program reads, NULL at the end; a test holds it to the tables. */
extern const char *const fx_env_names[];
