#pragma once
#include "common/base/auto.h"
#include "common/base/span.h"

/** A bump allocator over one fixed buffer; under ASan the unused part is poisoned.
 *  A full arena is RESOURCE_EXHAUSTED, never growth. @thread one owner at a time */
typedef struct fx_arena {
    uint8_t *base;
    size_t used, cap;
    bool full; /* an allocation was refused since the last reset */
} fx_arena;

/** `buffer` is borrowed and must outlive the arena. */
void fx_arena_init(fx_arena *arena, void *buffer, size_t cap);
void fx_arena_reset(fx_arena *arena);
/** Gives back everything allocated since `arena->used` was `used`. */
void fx_arena_rewind(fx_arena *arena, size_t used);
/** Unpoisons the buffer, so that its owner can free it. */
void fx_arena_done(fx_arena *arena);
/** 16-byte aligned, zeroed; NULL when full. Valid until reset. */
void *fx_arena_alloc(fx_arena *arena, size_t size);
void *fx_arena_array(fx_arena *arena, size_t count, size_t size);
/** A NUL-terminated copy; NULL when full. */
char *fx_arena_copy(fx_arena *arena, fx_span bytes);
char *fx_arena_printf(fx_arena *arena, const char *fmt, ...) FX_PRINTF(2, 3);
