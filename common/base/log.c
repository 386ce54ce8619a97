#include "common/base/log.h"
#include "common/base/clock.h"
#include "common/base/span.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static _Atomic int level_min_ = FX_LOG_INFO;
static const char *service_ = "fractal";

void fx_log_level_min(enum fx_log_level level) {
    atomic_store(&level_min_, level);
}

void fx_log_service(const char *name) {
    service_ = name;
}

static void put(fx_buf *out, const char *text) {
    fx_buf_put(out, fx_span_str(text));
}

static void put_quoted(fx_buf *out, const char *text) {
    put(out, "\"");
    for (const char *c = text; *c; c++) {
        char escaped[8];
        if (*c == '"' || *c == '\\')
            (void)snprintf(escaped, sizeof escaped, "\\%c", *c);
        else if ((unsigned char)*c < 0x20 || *c == 0x7f)
            (void)snprintf(escaped, sizeof escaped, "\\x%02x", (unsigned)(unsigned char)*c);
        else
            (void)snprintf(escaped, sizeof escaped, "%c", *c);
        put(out, escaped);
    }
    put(out, "\"");
}

static bool is_plain(const char *text) {
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c <= 0x20 || *c == '"' || *c == '=' || *c == '\\' || *c == 0x7f)
            return false;
    return *text != '\0';
}

static void put_pair(fx_buf *out, const struct fx_kv *pair) {
    put(out, " ");
    put(out, pair->key);
    put(out, "=");
    if (!pair->text) {
        char number[24];
        (void)snprintf(number, sizeof number, "%lld", (long long)pair->number);
        put(out, number);
    } else if (is_plain(pair->text)) {
        put(out, pair->text);
    } else {
        put_quoted(out, pair->text);
    }
}

void fx_log_line(enum fx_log_level level, const struct fx_kv *pairs) {
    static const char *const names[] = {"debug", "info", "warn", "error"};
    if ((int)level < atomic_load(&level_min_)) return;
    uint64_t now = fx_wall_ms();
    time_t seconds = (time_t)(now / 1000);
    struct tm utc;
    char head[64], line[2048];
    (void)gmtime_r(&seconds, &utc);
    size_t n = strftime(head, sizeof head, "time=%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(head + n, sizeof head - n, ".%03uZ level=%s", (unsigned)(now % 1000),
                   names[level]);
    fx_buf out = {(uint8_t *)line, 0, sizeof line - 1};
    put(&out, head);
    put_pair(&out, &FX_KS("service", service_));
    for (; pairs->key; pairs++)
        put_pair(&out, pairs);
    size_t len = out.len;
    if (!fx_buf_fits(&out)) {
        len = out.cap;
        memset(line + len - 3, '.', 3);
    }
    line[len++] = '\n';
    (void)!write(STDERR_FILENO, line, len);
}

int fx_exit(bool ok, const fx_error *err) {
    if (!ok)
        fx_log(FX_LOG_ERROR, FX_EVENT("failed"), FX_KS("code", fx_code_name(err->code)),
               FX_KS("error", err->text));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
