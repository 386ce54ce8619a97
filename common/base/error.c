#include "common/base/error.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum fx_code code_of_errno(int number) {
    switch (number) {
    case ENOENT: return FX_NOT_FOUND;
    case EEXIST: return FX_ALREADY_EXISTS;
    case EACCES:
    case EPERM: return FX_PERMISSION_DENIED;
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENFILE:
    case EMFILE: return FX_RESOURCE_EXHAUSTED;
    case EINVAL: return FX_INVALID_ARGUMENT;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE: return FX_UNAVAILABLE;
    case ETIMEDOUT: return FX_DEADLINE_EXCEEDED;
    default: return FX_INTERNAL;
    }
}

void fx_error_set(fx_error *err, enum fx_code code, const char *fmt, ...) {
    if (!err) return;
    char text[sizeof err->text]; /* the arguments may point into err->text */
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    err->code = code;
    memcpy(err->text, text, sizeof text);
}

void fx_error_set_errno(fx_error *err, const char *fmt, ...) {
    int number = errno;
    if (!err) return;
    char text[160];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fx_error_set(err, code_of_errno(number), "%s: %s", text, strerror(number));
}

void fx_error_wrap(fx_error *err, const char *fmt, ...) {
    if (!err) return;
    char text[160];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fx_error_set(err, err->code, "%s: %s", text, err->text);
}

const char *fx_code_name(enum fx_code code) {
    static const char *const names[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };
    return (size_t)code < FX_COUNT(names) ? names[code] : "UNKNOWN";
}

void fx_assert_failed(const char *what, const char *file, int line) {
    (void)fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, what);
    abort();
}
