#pragma once
#include <stdint.h>
#include "common/base/error.h"

enum fx_log_level { FX_LOG_DEBUG, FX_LOG_INFO, FX_LOG_WARN, FX_LOG_ERROR };

/** One key=value of a line; text is quoted and escaped, so that it can't forge a line. */
struct fx_kv {
    const char *key;
    const char *text; /* NULL: `number` */
    int64_t number;
};
#define FX_EVENT(name) ((struct fx_kv){"event", (name), 0})
#define FX_KS(key, value) ((struct fx_kv){(key), (value), 0})
#define FX_KI(key, value) ((struct fx_kv){(key), NULL, (int64_t)(value)})
#define FX_KV_END ((struct fx_kv){NULL, NULL, 0})

/** logfmt to stderr in one write: `fx_log(FX_LOG_INFO, FX_EVENT("ready"), FX_KS("model", m));`
 *  Only services log; common/ and kernels/ return errors. No payloads, no secrets. @thread any */
#define fx_log(level, ...) fx_log_line((level), (const struct fx_kv[]){__VA_ARGS__, FX_KV_END})
void fx_log_line(enum fx_log_level level, const struct fx_kv *pairs);
/** Below this nothing is written; default INFO. */
void fx_log_level_min(enum fx_log_level level);
/** The service's name in each line. `name` is borrowed for ever. */
void fx_log_service(const char *name);

/** main's last line: logs a failure once; EXIT_SUCCESS or EXIT_FAILURE. */
int fx_exit(bool ok, const fx_error *err);
