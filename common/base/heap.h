#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/base/auto.h"

/** The one allocator of our code: zeroed memory, NULL when there is none (or size overflows).
 *  Counted, so that a test can demand 0 per decode step; aborts after fx_heap_seal().
 *  @thread any @own caller, free() */
void *fx_alloc(size_t count, size_t size);
/** As realloc; the grown part is not zeroed. */
void *fx_realloc(void *old, size_t count, size_t size);
char *fx_strdup(const char *text);
/** Calls of the above by this thread since it started. */
uint64_t fx_heap_count(void);
/** From now on an allocation by the calling thread aborts: the hot path allocates nothing. */
void fx_heap_seal(void);
void fx_heap_unseal(void);

static inline void fx_heap_fclose(FILE *file) {
    (void)fclose(file);
}
FX_DEFINE_AUTO(char, free)
FX_DEFINE_AUTO(uint8_t, free)
FX_DEFINE_AUTO(float, free)
FX_DEFINE_AUTO(void, free)
FX_DEFINE_AUTO(FILE, fx_heap_fclose)
