#pragma once
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/rpc/pb.h"
#include "common/rpc/tls.h"

enum { FX_MESSAGE_BYTES_DEFAULT = 4 * 1024 * 1024 };

/** grpc_init, with core's own log silenced (libraries do not log). Each takes one fx_rpc__done. */
void fx_rpc__init(void);
void fx_rpc__done(void);

static inline fx_span fx_rpc__span(const grpc_slice *slice) {
    return (fx_span){GRPC_SLICE_START_PTR(*slice), GRPC_SLICE_LENGTH(*slice)};
}
/** Packs. @own caller, grpc_slice_unref */
grpc_slice fx_rpc__slice(const void *message);
/** Packs into a buffer of its own. @own caller, grpc_byte_buffer_destroy */
grpc_byte_buffer *fx_rpc__pack(const void *message);
/** Unpacks a whole buffer into the arena. With `field` (FX_PB_FIELD_MAX bytes) its strings are
 *  checked too: fx_pb_check_text. */
FX_MUST bool fx_rpc__unpack(const ProtobufCMessageDescriptor *type, grpc_byte_buffer *buffer,
                            fx_arena *arena, char *field, void *out, fx_error *err);
/** The value of `key` among the first `max` entries; .at NULL when absent. */
fx_span fx_rpc__find(const grpc_metadata_array *metadata, size_t max, const char *key);
grpc_arg fx_rpc__arg_int(const char *key, int value);
grpc_arg fx_rpc__arg_text(const char *key, const char *value);
gpr_timespec fx_rpc__in_ms(uint64_t ms);

/** Credentials of these paths, insecure ones without paths. @own caller, grpc_*_release
 *  @err NOT_FOUND, INVALID_ARGUMENT */
FX_MUST bool fx_tls__server(const struct fx_tls *tls, grpc_server_credentials **out, fx_error *err);
FX_MUST bool fx_tls__client(const struct fx_tls *tls, grpc_channel_credentials **out,
                            fx_error *err);
bool fx_tls__on(const struct fx_tls *tls);
