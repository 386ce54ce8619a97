#pragma once
#include <protobuf-c/protobuf-c.h>
#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/base/span.h"

/** A ProtobufCAllocator on an arena: frees do nothing, a full arena makes unpacking fail.
 *  `ProtobufCAllocator pb = fx_arena_pb(arena); x__unpack(&pb, len, at);` @own the arena */
static inline void *fx_arena_pb_alloc(void *arena, size_t size) {
    return fx_arena_alloc(arena, size);
}
static inline void fx_arena_pb_free(void *arena, void *pointer) {
    (void)arena, (void)pointer;
}
static inline ProtobufCAllocator fx_arena_pb(fx_arena *arena) {
    return (ProtobufCAllocator){fx_arena_pb_alloc, fx_arena_pb_free, arena};
}

/** A borrowed text for a field of a message: protobuf-c's lack const, and packing only reads. */
static inline char *fx_pb_text(const char *borrowed) {
    return (char *)(uintptr_t)borrowed;
}

/** Unpacks `bytes` into the arena; valid until its reset. `out` is a message of `type`.
 *  @err INVALID_ARGUMENT malformed, RESOURCE_EXHAUSTED the arena is full */
FX_MUST bool fx_pb_unpack(const ProtobufCMessageDescriptor *type, fx_span bytes, fx_arena *arena,
                          void *out, fx_error *err);
enum { FX_PB_FIELD_MAX = 96 };
/** Are all strings of a packed message, and of those in it, UTF-8 without NUL? protobuf-c takes any
 *  bytes and what it makes of them ends at a NUL. `field` gets the first that is not, for example
 *  "messages[1].content". @pre `bytes` unpack as a `type` @err INVALID_ARGUMENT */
FX_MUST bool fx_pb_check_text(const ProtobufCMessageDescriptor *type, fx_span bytes,
                              char field[FX_PB_FIELD_MAX], fx_error *err);
/** Packs into the arena. @err RESOURCE_EXHAUSTED */
FX_MUST bool fx_pb_pack(const void *message, fx_arena *arena, fx_span *out, fx_error *err);
