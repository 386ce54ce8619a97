/* Requests of the public gRPC API: unpacked, written as JSON, checked field by field. The first
 * byte chooses the method. */
#include "tests/fuzz/fuzz.h"
#include "common/rpc/pb.h"
#include "fractal/v1/inference.pb-c.h"
#include "services/gateway/rpc.h"

enum { ARENA_BYTES = 256 * 1024 };

static const ProtobufCMessageDescriptor *const types[] = {
    &fractal__v1__generate_request__descriptor,
    &fractal__v1__chat_request__descriptor,
    &fractal__v1__count_tokens_request__descriptor,
};

/* What is accepted is whole; what is refused says why. */
static void read_request(const ProtobufCMessage *message) {
    struct gw_problem problem = {0};
    struct gw_request request = {0};
    enum gw_kind kind;
    json_t *json;
    if (gw_rpc_json(message, &kind, &json, &problem) &&
        gw_request_read(kind, json, &request, &problem)) {
        FX_ASSERT(request.model && (kind == GW_CHAT ? request.messages : request.prompt));
        gw_request_done(&request);
        return;
    }
    uint8_t status[GW_RPC_STATUS_MAX];
    FX_ASSERT(*problem.message && gw_rpc_status(&problem, status) <= sizeof status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t memory[ARENA_BYTES];
    fx_arena arena;
    fx_error err = {0};
    ProtobufCMessage *message;
    char field[FX_PB_FIELD_MAX];
    if (!size) return 0;
    fx_arena_init(&arena, memory, sizeof memory);
    const ProtobufCMessageDescriptor *type = types[data[0] % FX_COUNT(types)];
    fx_span bytes = {data + 1, size - 1};
    if (fx_pb_unpack(type, bytes, &arena, &message, &err)) {
        if (fx_pb_check_text(type, bytes, field, &err))
            read_request(message);
        else
            FX_ASSERT(*field && *err.text);
    }
    fx_arena_done(&arena);
    return 0;
}
