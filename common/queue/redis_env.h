#pragma once
#include "common/base/env.h"
#include "common/queue/redis.h"

#define FX_REDIS_URL_HELP                                                                          \
    "redis[s]://[user:pass@]host[:port][/db], unix:///path, or "                                   \
    "redis[s]+sentinel://[user:pass@]host:port,host:port/master[/db]"

/** The rows of a service's table whose Redis may be spoken to by TLS; `member` is a
 *  struct fx_redis_tls. */
#define FX_REDIS_TLS_ROWS(config, member)                                                          \
    {"FX_REDIS_CA",                                                                                \
     FX_ENV_TEXT,                                                                                  \
     offsetof(config, member.ca_file),                                                             \
     0,                                                                                            \
     0,                                                                                            \
     "",                                                                                           \
     NULL,                                                                                         \
     "PEM file of who signs Redis's certificate (rediss://); empty: the system's"},                \
        {"FX_REDIS_CERT",                                                                          \
         FX_ENV_TEXT,                                                                              \
         offsetof(config, member.cert_file),                                                       \
         0,                                                                                        \
         0,                                                                                        \
         "",                                                                                       \
         NULL,                                                                                     \
         "PEM file of our own certificate for Redis; empty: none is shown"},                       \
    {                                                                                              \
        "FX_REDIS_KEY", FX_ENV_TEXT, offsetof(config, member.key_file), 0, 0, "", NULL,            \
            "PEM file of its key"                                                                  \
    }
