#pragma once
#include <stddef.h>

#define FX_MUST __attribute__((warn_unused_result))
#define FX_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define FX_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/** `fx_auto(type) p = NULL;`: p is freed when it leaves scope. The type needs FX_DEFINE_AUTO. */
#define fx_auto(type) __attribute__((cleanup(fx_auto_##type))) type *
#define FX_DEFINE_AUTO(type, free_function)                                                        \
    static inline void fx_auto_##type(type **p) {                                                  \
        if (*p) free_function(*p);                                                                 \
    }
/** Hands `p` over: its value leaves, the variable (and so its cleanup) keeps NULL. */
#define fx_take(p)                                                                                 \
    __extension__({                                                                                \
        __typeof__(p) fx_taken_ = (p);                                                             \
        (p) = NULL;                                                                                \
        fx_taken_;                                                                                 \
    })
