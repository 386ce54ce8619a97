#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "common/base/error.h"

/** A bounded queue of fixed-size messages from one producer thread to one consumer thread, without
 *  locks or allocation. Nothing wakes the consumer: that is the owner's affair. */
typedef struct fx_ring fx_ring;

/** `capacity` is rounded up to a power of two, at most 2^20. @own caller, fx_ring_free()
 *  @err INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
FX_MUST bool fx_ring_open(uint32_t capacity, uint32_t item_bytes, fx_ring **out, fx_error *err);
void fx_ring_free(fx_ring *ring);
FX_DEFINE_AUTO(fx_ring, fx_ring_free)
/** False: full. What was written before the push is seen after the pop. @thread the producer */
FX_MUST bool fx_ring_push(fx_ring *ring, const void *item);
/** False: empty. @thread the consumer */
FX_MUST bool fx_ring_pop(fx_ring *ring, void *item);
/** Messages that wait, as of some moment during the call. @thread any */
uint32_t fx_ring_count(const fx_ring *ring);
