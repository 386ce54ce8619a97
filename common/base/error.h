#pragma once
#include "common/base/auto.h"
#include <stdbool.h>

/** Status codes with gRPC's numbers, so that the RPC edge maps nothing. */
enum fx_code {
    FX_OK = 0,
    FX_CANCELLED = 1,
    FX_UNKNOWN = 2,
    FX_INVALID_ARGUMENT = 3,
    FX_DEADLINE_EXCEEDED = 4,
    FX_NOT_FOUND = 5,
    FX_ALREADY_EXISTS = 6,
    FX_PERMISSION_DENIED = 7,
    FX_RESOURCE_EXHAUSTED = 8,
    FX_FAILED_PRECONDITION = 9,
    FX_ABORTED = 10,
    FX_OUT_OF_RANGE = 11,
    FX_UNIMPLEMENTED = 12,
    FX_INTERNAL = 13,
    FX_UNAVAILABLE = 14,
    FX_DATA_LOSS = 15,
    FX_UNAUTHENTICATED = 16,
};

/** An error on the caller's stack: a code and a text that is cut, never allocated. */
typedef struct fx_error {
    enum fx_code code;
    char text[256];
} fx_error;

/** `return fx_fail(err, FX_NOT_FOUND, "model '%s'", name);` sets `err` and is false. */
#define fx_fail(err, code, ...) (fx_error_set((err), (code), __VA_ARGS__), false)
/** As fx_fail, from errno: the code follows errno, strerror is appended. */
#define fx_fail_errno(err, ...) (fx_error_set_errno((err), __VA_ARGS__), false)
/** Prepends "text: " to what the callee said; is false. */
#define fx_wrap(err, ...) (fx_error_wrap((err), __VA_ARGS__), false)

/** All of them accept err == NULL and then do nothing. @thread any */
void fx_error_set(fx_error *err, enum fx_code code, const char *fmt, ...) FX_PRINTF(3, 4);
void fx_error_set_errno(fx_error *err, const char *fmt, ...) FX_PRINTF(2, 3);
void fx_error_wrap(fx_error *err, const char *fmt, ...) FX_PRINTF(2, 3);
/** "NOT_FOUND" ...; "UNKNOWN" for a number that is none. */
const char *fx_code_name(enum fx_code code);

/** A bug of ours, not an error: stays on in release and aborts naming the place. */
#define FX_ASSERT(condition)                                                                       \
    ((condition) ? (void)0 : fx_assert_failed(#condition, __FILE__, __LINE__))
__attribute__((noreturn)) void fx_assert_failed(const char *what, const char *file, int line);
