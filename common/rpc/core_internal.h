#pragma once
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include "common/base/arena.h"
#include "common/base/certificates.h"
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

bool fx_tls__on(const struct fx_tls *tls);
/** What the paths hold; NULL without paths, which is no error. @own caller, fx_certs_free
 *  @err NOT_FOUND, INVALID_ARGUMENT */
FX_MUST bool fx_tls__open(const struct fx_tls *tls, fx_certs **out, fx_error *err);
/** A server's certificates; new ones are taken by the next handshake. Outlives its core. */
struct fx_tls_server {
    fx_certs *certs;     /* NULL: plaintext */
    uint64_t generation; /* that core has */
};
/** @own caller, grpc_server_credentials_release */
grpc_server_credentials *fx_tls__server(struct fx_tls_server *tls);
/** Of what `certs` holds now (NULL: plaintext), and which that is.
 *  @own caller, grpc_channel_credentials_release @err INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
FX_MUST bool fx_tls__client(fx_certs *certs, grpc_channel_credentials **out, uint64_t *generation,
                            fx_error *err);
