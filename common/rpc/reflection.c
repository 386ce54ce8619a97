#include "common/rpc/descriptors_internal.h"
#include "common/rpc/pb.h"
#include "common/rpc/server_internal.h"
#include "grpc/reflection/v1/reflection.pb-c.h"

/* v1 and v1alpha are the same on the wire, so one handler with v1's types serves both. */
typedef Grpc__Reflection__V1__ServerReflectionRequest request_t;
typedef Grpc__Reflection__V1__ServerReflectionResponse response_t;

#define CASE(name) GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##name
#define ANSWER(name) GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##name

enum { SERVICES_MAX = FX_METHODS_MAX + 3, SERVICE_NAME_MAX = 256 };

struct answer {
    response_t response;
    Grpc__Reflection__V1__FileDescriptorResponse file;
    Grpc__Reflection__V1__ListServiceResponse list;
    Grpc__Reflection__V1__ErrorResponse error;
    ProtobufCBinaryData bytes[FX_IMPORTS_MAX];
    Grpc__Reflection__V1__ServiceResponse services[SERVICES_MAX];
    Grpc__Reflection__V1__ServiceResponse *service_at[SERVICES_MAX];
    char names[SERVICES_MAX][SERVICE_NAME_MAX];
};

static void answer_error(struct answer *out, enum fx_code code, const char *text) {
    grpc__reflection__v1__error_response__init(&out->error);
    out->error.error_code = (int32_t)code;
    out->error.error_message = fx_pb_text(text);
    out->response.message_response_case = ANSWER(ERROR_RESPONSE);
    out->response.error_response = &out->error;
}

/* With what it imports, so that a client need not ask again. */
static void answer_file(struct answer *out, const struct fx_descriptors *descriptors,
                        const struct fx_descriptor_file *file) {
    const struct fx_descriptor_file *files[FX_IMPORTS_MAX];
    if (!file) {
        answer_error(out, FX_NOT_FOUND, "no such file or symbol");
        return;
    }
    grpc__reflection__v1__file_descriptor_response__init(&out->file);
    out->file.file_descriptor_proto = out->bytes;
    out->file.n_file_descriptor_proto = fx_descriptors__with_imports(descriptors, file, files);
    for (size_t i = 0; i < out->file.n_file_descriptor_proto; i++)
        out->bytes[i] =
            (ProtobufCBinaryData){files[i]->bytes.len, (uint8_t *)(uintptr_t)files[i]->bytes.at};
    out->response.message_response_case = ANSWER(FILE_DESCRIPTOR_RESPONSE);
    out->response.file_descriptor_response = &out->file;
}

/* Adds the service of "/package.Service/Method", unless it is listed. */
static void add_service(struct answer *out, const char *method) {
    size_t len = strcspn(method + 1, "/"), count = out->list.n_service;
    if (len >= SERVICE_NAME_MAX || count == SERVICES_MAX) return;
    for (size_t i = 0; i < count; i++)
        if (strlen(out->names[i]) == len && memcmp(out->names[i], method + 1, len) == 0) return;
    memcpy(out->names[count], method + 1, len);
    grpc__reflection__v1__service_response__init(&out->services[count]);
    out->services[count].name = out->names[count];
    out->service_at[count] = &out->services[count];
    out->list.n_service++;
}

static void answer_list(struct answer *out, const fx_server *server) {
    grpc__reflection__v1__list_service_response__init(&out->list);
    out->list.service = out->service_at;
    for (size_t i = 0; i < server->method_count; i++)
        add_service(out, server->methods[i].name);
    for (size_t i = 0; i < FX_COUNT(fx_health__methods); i++)
        add_service(out, fx_health__methods[i].name);
    for (size_t i = 0; i < FX_COUNT(fx_reflection__methods); i++)
        add_service(out, fx_reflection__methods[i].name);
    out->response.message_response_case = ANSWER(LIST_SERVICES_RESPONSE);
    out->response.list_services_response = &out->list;
}

static void answer(struct answer *out, const fx_server *server, const request_t *in) {
    grpc__reflection__v1__server_reflection_response__init(&out->response);
    out->response.valid_host = in->host;
    out->response.original_request = (request_t *)(uintptr_t)in;
    switch (in->message_request_case) {
    case CASE(LIST_SERVICES): answer_list(out, server); return;
    case CASE(FILE_BY_FILENAME):
        answer_file(
            out, server->descriptors,
            fx_descriptors__by_name(server->descriptors, fx_span_str(in->file_by_filename)));
        return;
    case CASE(FILE_CONTAINING_SYMBOL):
        answer_file(out, server->descriptors,
                    fx_descriptors__by_symbol(server->descriptors,
                                              fx_span_str(in->file_containing_symbol)));
        return;
    default: answer_error(out, FX_NOT_FOUND, "these services have no extensions"); return;
    }
}

static void read_on(fx_call *call, void *user) {
    (void)user;
    fx_call_next(call);
}

static void gone(fx_call *call, void *user) {
    (void)user;
    fx_call_fail(call, FX_CANCELLED, "cancelled");
}

static void info(fx_call *call, const void *request, void *context) {
    if (!request) {
        fx_call_finish(call);
        return;
    }
    struct answer *out = fx_arena_alloc(fx_call_arena(call), sizeof *out);
    if (!out) {
        fx_call_fail(call, FX_RESOURCE_EXHAUSTED, "the request is too large");
        return;
    }
    answer(out, context, request);
    fx_call_on_writable(call, read_on, NULL);
    if (fx_call_send(call, &out->response) != FX_SEND_OK)
        gone(call, NULL);
    else
        fx_call_on_cancel(call, gone, NULL); /* a lost write calls nothing else */
}

const struct fx_method fx_reflection__methods[2] = {
    {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",      info,
     &grpc__reflection__v1__server_reflection_request__descriptor, FX_RPC_BIDI, 0, 4096},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", info,
     &grpc__reflection__v1__server_reflection_request__descriptor, FX_RPC_BIDI, 0, 4096},
};
