#pragma once
#include "common/base/error.h"
#include <stdint.h>

enum { FX_REDIS_URL_MAX = 512 };

/** A parsed FX_REDIS_URL; `path` not empty: a unix socket. */
struct fx_redis_url {
    char user[FX_REDIS_URL_MAX], password[FX_REDIS_URL_MAX];
    char host[FX_REDIS_URL_MAX], path[FX_REDIS_URL_MAX];
    uint16_t port;
    uint32_t db;
};

/** redis://[user:pass@]host[:port][/db], [v6] hosts, %XX in user and password;
 *  unix://[user:pass@]/path[?db=N]. The error never shows the URL: it may hold a password.
 *  @err INVALID_ARGUMENT */
FX_MUST bool fx_redis__url_parse(const char *text, struct fx_redis_url *out, fx_error *err);
