/* What a peer's bytes reach before a handler: the unpacking of every request into a small arena,
 * the trace headers, the symbols that reflection is asked for. The first byte chooses: 0x40
 * the headers, 0x41 a symbol, else a message. */
#include "tests/fuzz/fuzz.h"
#include "common/rpc/descriptors_internal.h"
#include "common/rpc/pb.h"
#include "common/rpc/trace.h"
#include "fractal/v1/generation.pb-c.h"
#include "fractal/v1/scheduler.pb-c.h"
#include "fractal/v1/slicer.pb-c.h"
#include "fractal/v1/tenant.pb-c.h"
#include "grpc/health/v1/health.pb-c.h"
#include "grpc/reflection/v1/reflection.pb-c.h"

enum { ARENA_BYTES = 8 * 1024 };

static const ProtobufCMessageDescriptor *const types[] = {
    &fractal__v1__submit_generation_request__descriptor,
    &fractal__v1__cancel_generation_request__descriptor,
    &fractal__v1__register_worker_request__descriptor,
    &fractal__v1__queue_stats_request__descriptor,
    &fractal__v1__import_model_request__descriptor,
    &fractal__v1__list_models_reply__descriptor,
    &fractal__v1__create_tenant_request__descriptor,
    &fractal__v1__create_key_request__descriptor,
    &fractal__v1__authenticate_request__descriptor,
    &fractal__v1__list_tenants_request__descriptor,
    &grpc__health__v1__health_check_request__descriptor,
    &grpc__reflection__v1__server_reflection_request__descriptor,
    &fractal__v1__generation_task__descriptor,
};

/* What was unpacked packs again, and to no more than it can have been. */
static void unpack(const ProtobufCMessageDescriptor *type, fx_span bytes) {
    static uint8_t memory[ARENA_BYTES];
    fx_arena arena;
    fx_error err = {0};
    ProtobufCMessage *message = NULL;
    fx_arena_init(&arena, memory, sizeof memory);
    if (fx_pb_unpack(type, bytes, &arena, &message, &err))
        FX_ASSERT(message->descriptor == type && protobuf_c_message_check(message));
    else
        FX_ASSERT(!message &&
                  (err.code == FX_INVALID_ARGUMENT || err.code == FX_RESOURCE_EXHAUSTED));
    fx_arena_done(&arena);
}

static void trace(fx_span bytes) {
    fx_trace made, again;
    fx_trace_accept(bytes, bytes, &made);
    fx_trace_accept(fx_span_str(made.request_id), fx_span_str(made.traceparent), &again);
    FX_ASSERT(memcmp(&made, &again, sizeof made) == 0);
}

static void symbol(fx_span bytes) {
    static struct fx_descriptors *descriptors;
    fx_error err = {0};
    if (!descriptors) FX_ASSERT(fx_descriptors__open(&descriptors, &err));
    const struct fx_descriptor_file *file = fx_descriptors__by_symbol(descriptors, bytes);
    if (file)
        FX_ASSERT(bytes.len > file->package.len &&
                  memcmp(bytes.at, file->package.at, file->package.len) == 0);
    (void)fx_descriptors__by_name(descriptors, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    fx_span rest = {data + 1, size - 1};
    if (data[0] == 0x40)
        trace(rest);
    else if (data[0] == 0x41)
        symbol(rest);
    else
        unpack(types[data[0] % FX_COUNT(types)], rest);
    return 0;
}
