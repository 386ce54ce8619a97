#pragma once
#include "common/base/error.h"
#include <stdint.h>

enum {
    FX_REDIS_URL_MAX = 1024,
    FX_REDIS_TEXT_MAX = 256, /* of a user, a password, a host, a master's name */
    FX_REDIS_HOSTS_MAX = 8,
};

struct fx_redis_host {
    char name[FX_REDIS_TEXT_MAX]; /* or address */
    uint16_t port;
};

/** A parsed FX_REDIS_URL. */
struct fx_redis_url {
    char user[FX_REDIS_TEXT_MAX], password[FX_REDIS_TEXT_MAX];
    char path[FX_REDIS_TEXT_MAX]; /* of a unix socket; "": hosts */
    bool tls;
    struct fx_redis_host hosts[FX_REDIS_HOSTS_MAX]; /* one; or the sentinels */
    uint32_t host_count;
    char master[FX_REDIS_TEXT_MAX]; /* its name, of whom the sentinels are asked; "": hosts[0] */
    uint32_t db;
};

/** redis://[user:pass@]host[:port][/db], [v6] hosts, %XX in user and password;
 *  redis+sentinel://[user:pass@]host[:port],host[:port].../master[/db]; the same with rediss: TLS;
 *  unix://[user:pass@]/path[?db=N]. The error never shows the URL: it may hold a password.
 *  @err INVALID_ARGUMENT */
FX_MUST bool fx_redis__url_parse(const char *text, struct fx_redis_url *out, fx_error *err);
