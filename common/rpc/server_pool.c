#include <sys/mman.h>
#include "common/base/heap.h"
#include "common/rpc/server_internal.h"

/* What a slot keeps of its arena for the next call. */
#define KEEP_BYTES ((size_t)256 * 1024)
#define PAGE_BYTES ((uintptr_t)4096)

static void slot_init(fx_call *call, struct fx_pool *pool) {
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&call->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&call->idle_write, &monotonic);
    pthread_condattr_destroy(&monotonic);
    call->server = pool->server;
    call->pool = pool;
    fx_arena_init(&call->arena, pool->memory + (call - pool->slots) * (ptrdiff_t)pool->arena_bytes,
                  pool->arena_bytes);
}

bool fx_pool__init(struct fx_pool *pool, fx_server *server, uint32_t count, size_t arena_bytes,
                   fx_error *err) {
    pthread_mutex_init(&pool->lock, NULL);
    arena_bytes = (arena_bytes + 15) & ~(size_t)15;
    pool->slots = fx_alloc(count, sizeof *pool->slots);
    pool->memory = fx_alloc(count, arena_bytes);
    if (!pool->slots || !pool->memory)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "%u call slots of %zu bytes", count,
                       arena_bytes);
    pool->count = count;
    pool->server = server;
    pool->arena_bytes = arena_bytes;
    return true;
}

void fx_pool__done(struct fx_pool *pool) {
    for (uint32_t i = 0; i < pool->begun; i++) {
        fx_arena_done(&pool->slots[i].arena);
        pthread_mutex_destroy(&pool->slots[i].lock);
        pthread_cond_destroy(&pool->slots[i].idle_write);
    }
    free(pool->slots);
    free(pool->memory);
    pthread_mutex_destroy(&pool->lock);
}

fx_call *fx_pool__take(struct fx_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    fx_call *call = pool->free;
    if (call)
        pool->free = call->next;
    else if (pool->begun < pool->count)
        slot_init(call = &pool->slots[pool->begun++], pool);
    if (call) pool->active++;
    pthread_mutex_unlock(&pool->lock);
    return call;
}

void fx_pool__trim(fx_call *call) {
    fx_arena *arena = &call->arena;
    uintptr_t begin = ((uintptr_t)arena->base + KEEP_BYTES + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
    uintptr_t end = ((uintptr_t)arena->base + arena->used) & ~(PAGE_BYTES - 1);
    if (arena->used > KEEP_BYTES && begin < end)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void fx_pool__give(fx_call *call) {
    struct fx_pool *pool = call->pool;
    pthread_mutex_lock(&pool->lock);
    call->next = pool->free;
    pool->free = call;
    pool->active--;
    pthread_mutex_unlock(&pool->lock);
}

uint32_t fx_pool__active(struct fx_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    uint32_t active = pool->active;
    pthread_mutex_unlock(&pool->lock);
    return active;
}

uint32_t fx_pool__begun(struct fx_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    uint32_t begun = pool->begun;
    pthread_mutex_unlock(&pool->lock);
    return begun;
}
