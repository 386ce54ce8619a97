#include "common/base/heap.h"
#include "common/base/error.h"
#include <string.h>

static _Thread_local uint64_t count_;
static _Thread_local bool sealed_;

static void *counted(void *p) {
    FX_ASSERT(!sealed_);
    count_++;
    return p;
}

void *fx_alloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    return counted(calloc(1, bytes ? bytes : 1));
}

void *fx_realloc(void *old, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    return counted(realloc(old, bytes ? bytes : 1));
}

char *fx_strdup(const char *text) {
    return counted(strdup(text));
}

uint64_t fx_heap_count(void) {
    return count_;
}

void fx_heap_seal(void) {
    sealed_ = true;
}

void fx_heap_unseal(void) {
    sealed_ = false;
}
