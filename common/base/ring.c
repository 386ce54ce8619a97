#include "common/base/ring.h"
#include "common/base/heap.h"
#include <stdatomic.h>
#include <string.h>

enum { CAPACITY_MAX = 1 << 20, LINE_BYTES = 64 };

/* head and tail only grow (modulo 2^32); they lie a cache line apart, so that the two threads do
 * not pull one line to and fro. */
struct fx_ring {
    uint8_t *items;
    uint32_t item_bytes, mask;
    char before[LINE_BYTES];
    _Atomic uint32_t head; /* next to pop */
    char between[LINE_BYTES];
    _Atomic uint32_t tail; /* next to push */
    char after[LINE_BYTES];
};

bool fx_ring_open(uint32_t capacity, uint32_t item_bytes, fx_ring **out, fx_error *err) {
    if (!capacity || capacity > CAPACITY_MAX || !item_bytes)
        return fx_fail(err, FX_INVALID_ARGUMENT, "a ring of %u items", capacity);
    uint32_t slots = 1;
    while (slots < capacity)
        slots *= 2;
    fx_auto(fx_ring) ring = fx_alloc(1, sizeof(*ring));
    if (!ring) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "a ring");
    ring->items = fx_alloc(slots, item_bytes);
    if (!ring->items) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "a ring of %u items", slots);
    ring->item_bytes = item_bytes;
    ring->mask = slots - 1;
    *out = fx_take(ring);
    return true;
}

void fx_ring_free(fx_ring *ring) {
    if (!ring) return;
    free(ring->items);
    free(ring);
}

static uint8_t *item_at(const fx_ring *ring, uint32_t index) {
    return ring->items + (size_t)(index & ring->mask) * ring->item_bytes;
}

bool fx_ring_push(fx_ring *ring, const void *item) {
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    if (tail - head > ring->mask) return false;
    memcpy(item_at(ring, tail), item, ring->item_bytes);
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
    return true;
}

bool fx_ring_pop(fx_ring *ring, void *item) {
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    if (head == tail) return false;
    memcpy(item, item_at(ring, head), ring->item_bytes);
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
    return true;
}

uint32_t fx_ring_count(const fx_ring *ring) {
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    return atomic_load_explicit(&ring->tail, memory_order_acquire) - head;
}
