/* Each line of the input is the value of one row of a table; what loads must be in range. */
#include "tests/fuzz/fuzz.h"
#include "common/base/env.h"
#include <stdlib.h>
#include <string.h>

struct config {
    const char *text, *choice;
    uint64_t big;
    uint32_t small;
    bool flag;
};

static const struct fx_env_row rows[] = {
    {"FX_MODEL",     FX_ENV_TEXT,   offsetof(struct config, text),   0, 0,          "",      NULL,      ""},
    {"FX_BACKEND",   FX_ENV_CHOICE, offsetof(struct config, choice), 0, 0,          "cpu",   "cpu|ref", ""},
    {"FX_KV_MIB",    FX_ENV_U64,    offsetof(struct config, big),    7, UINT64_MAX, "7",     NULL,      ""},
    {"FX_LEASE_MS",  FX_ENV_U32,    offsetof(struct config, small),  3, 99,         "3",     NULL,      ""},
    {"FX_PLAINTEXT", FX_ENV_BOOL,   offsetof(struct config, flag),   0, 0,          "false", NULL,      ""},
};

static void set_from_line(const char *name, const uint8_t **at, const uint8_t *end) {
    char value[256];
    size_t len = 0;
    for (; *at < end && **at != '\n'; ++*at)
        if (**at && len < sizeof value - 1) value[len++] = (char)**at;
    value[len] = '\0';
    if (*at < end) ++*at;
    FX_ASSERT(setenv(name, value, 1) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *at = data, *end = data + size;
    struct config config = {0};
    fx_error err = {0};
    for (size_t i = 0; i < FX_COUNT(rows); i++)
        set_from_line(rows[i].name, &at, end);
    if (!fx_env_load(rows, FX_COUNT(rows), &config, &err)) {
        FX_ASSERT(err.code == FX_INVALID_ARGUMENT && strncmp(err.text, "FX_", 3) == 0);
        return 0;
    }
    FX_ASSERT(strcmp(config.choice, "cpu") == 0 || strcmp(config.choice, "ref") == 0);
    FX_ASSERT(config.big >= 7 && config.small >= 3 && config.small <= 99);
    return 0;
}
