#include "common/rpc/pb.h"

bool fx_pb_unpack(const ProtobufCMessageDescriptor *type, fx_span bytes, fx_arena *arena, void *out,
                  fx_error *err) {
    ProtobufCAllocator pb = fx_arena_pb(arena);
    arena->full = false;
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &pb, bytes.len, bytes.at);
    if (!message && arena->full)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "%s: %zu bytes do not fit the call's arena",
                       type->name, bytes.len);
    if (!message) return fx_fail(err, FX_INVALID_ARGUMENT, "%s: malformed protobuf", type->name);
    *(ProtobufCMessage **)out = message;
    return true;
}

bool fx_pb_pack(const void *message, fx_arena *arena, fx_span *out, fx_error *err) {
    size_t len = protobuf_c_message_get_packed_size(message);
    uint8_t *at = fx_arena_alloc(arena, len ? len : 1);
    if (!at) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "%zu bytes do not fit the arena", len);
    *out = (fx_span){at, protobuf_c_message_pack(message, at)};
    return true;
}
