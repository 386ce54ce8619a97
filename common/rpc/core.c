#include <grpc/byte_buffer_reader.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include "common/rpc/core_internal.h"

static void drop_log(gpr_log_func_args *args) {
    (void)args;
}

void fx_rpc__init(void) {
    gpr_set_log_function(drop_log);
    grpc_init();
}

void fx_rpc__done(void) {
    grpc_shutdown_blocking();
}

grpc_slice fx_rpc__slice(const void *message) {
    size_t len = protobuf_c_message_get_packed_size(message);
    grpc_slice slice = grpc_slice_malloc(len);
    (void)protobuf_c_message_pack(message, GRPC_SLICE_START_PTR(slice));
    return slice;
}

grpc_byte_buffer *fx_rpc__pack(const void *message) {
    grpc_slice slice = fx_rpc__slice(message);
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    return buffer;
}

bool fx_rpc__unpack(const ProtobufCMessageDescriptor *type, grpc_byte_buffer *buffer,
                    fx_arena *arena, char *field, void *out, fx_error *err) {
    grpc_byte_buffer_reader reader;
    if (!grpc_byte_buffer_reader_init(&reader, buffer))
        return fx_fail(err, FX_INVALID_ARGUMENT, "%s: cannot be decompressed", type->name);
    grpc_slice whole = grpc_byte_buffer_reader_readall(&reader);
    fx_span bytes = fx_rpc__span(&whole);
    bool ok = fx_pb_unpack(type, bytes, arena, out, err) &&
              (!field || fx_pb_check_text(type, bytes, field, err));
    grpc_slice_unref(whole);
    grpc_byte_buffer_reader_destroy(&reader);
    return ok;
}

fx_span fx_rpc__find(const grpc_metadata_array *metadata, size_t max, const char *key) {
    for (size_t i = 0; i < metadata->count && i < max; i++)
        if (grpc_slice_str_cmp(metadata->metadata[i].key, key) == 0)
            return fx_rpc__span(&metadata->metadata[i].value);
    return (fx_span){0};
}

grpc_arg fx_rpc__arg_int(const char *key, int value) {
    return (grpc_arg){GRPC_ARG_INTEGER, (char *)(uintptr_t)key, {.integer = value}};
}

grpc_arg fx_rpc__arg_text(const char *key, const char *value) {
    return (grpc_arg){
        GRPC_ARG_STRING, (char *)(uintptr_t)key, {.string = (char *)(uintptr_t)value}};
}

gpr_timespec fx_rpc__in_ms(uint64_t ms) {
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                        gpr_time_from_millis((int64_t)ms, GPR_TIMESPAN));
}
