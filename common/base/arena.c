#include "common/base/arena.h"
#include "common/base/error.h"
#include <stdarg.h>
#include <stdio.h>

#if defined(__SANITIZE_ADDRESS__)
#define FX_ASAN 1
#elif defined(__has_feature) /* clang's way to say it */
#if __has_feature(address_sanitizer)
#define FX_ASAN 1
#endif
#endif
#ifdef FX_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, len) ((void)(at), (void)(len))
#define ASAN_UNPOISON_MEMORY_REGION(at, len) ((void)(at), (void)(len))
#endif

enum { ALIGN = 16 };

void fx_arena_init(fx_arena *arena, void *buffer, size_t cap) {
    size_t skew = (size_t)(-(uintptr_t)buffer & (ALIGN - 1));
    if (skew > cap) skew = cap;
    *arena = (fx_arena){.base = (uint8_t *)buffer + skew, .cap = cap - skew};
    ASAN_POISON_MEMORY_REGION(arena->base, arena->cap);
}

void fx_arena_reset(fx_arena *arena) {
    arena->used = 0;
    arena->full = false;
    ASAN_POISON_MEMORY_REGION(arena->base, arena->cap);
}

void fx_arena_rewind(fx_arena *arena, size_t used) {
    FX_ASSERT(used <= arena->used);
    arena->used = used;
    arena->full = false;
    ASAN_POISON_MEMORY_REGION(arena->base + used, arena->cap - used);
}

void fx_arena_done(fx_arena *arena) {
    ASAN_UNPOISON_MEMORY_REGION(arena->base, arena->cap);
    *arena = (fx_arena){0};
}

void *fx_arena_alloc(fx_arena *arena, size_t size) {
    size_t rounded = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (rounded < size || rounded > arena->cap - arena->used) {
        arena->full = true;
        return NULL;
    }
    uint8_t *at = arena->base + arena->used;
    arena->used += rounded;
    ASAN_UNPOISON_MEMORY_REGION(at, size);
    memset(at, 0, size);
    return at;
}

void *fx_arena_array(fx_arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
    return fx_arena_alloc(arena, bytes);
}

char *fx_arena_copy(fx_arena *arena, fx_span bytes) {
    char *copy = fx_arena_alloc(arena, bytes.len < SIZE_MAX ? bytes.len + 1 : SIZE_MAX);
    if (copy && bytes.len) memcpy(copy, bytes.at, bytes.len);
    return copy;
}

char *fx_arena_printf(fx_arena *arena, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (len < 0) return NULL;
    char *text = fx_arena_alloc(arena, (size_t)len + 1);
    if (!text) return NULL;
    va_start(args, fmt);
    (void)vsnprintf(text, (size_t)len + 1, fmt, args);
    va_end(args);
    return text;
}
