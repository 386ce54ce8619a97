/* Server reflection, v1 and v1alpha, as a client of the protocol sees it. */
#include <event2/event.h>
#include "grpc/reflection/v1/reflection.pb-c.h"
#include "tests/integ/rpc/echo_service.h"

#define V1 "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
#define V1ALPHA "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
#define ASK(name) GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##name
#define TOLD(name) GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##name
typedef Grpc__Reflection__V1__ServerReflectionRequest ask_message;
typedef Grpc__Reflection__V1__ServerReflectionResponse told_message;

struct row {
    const char *name, *method;
    int ask;
    const char *text;
    int told;
    const char *want; /* a service that is listed, or text in the file's bytes */
};

static const struct row rows[] = {
    {"list v1",                V1,      ASK(LIST_SERVICES),                 "",                                       TOLD(LIST_SERVICES_RESPONSE),   "test.Echo"                  },
    {"list has health",        V1,      ASK(LIST_SERVICES),                 "",                                       TOLD(LIST_SERVICES_RESPONSE),
     "grpc.health.v1.Health"                                                                                                                                                       },
    {"list v1alpha",           V1ALPHA, ASK(LIST_SERVICES),                 "",                                       TOLD(LIST_SERVICES_RESPONSE),
     "grpc.reflection.v1alpha.ServerReflection"                                                                                                                                    },
    {"file by name",           V1,      ASK(FILE_BY_FILENAME),              "fractal/v1/tenant.proto",
     TOLD(FILE_DESCRIPTOR_RESPONSE),                                                                                                                  "CreateTenantRequest"        },
    {"file by name v1alpha",   V1ALPHA, ASK(FILE_BY_FILENAME),              "fractal/v1/generation.proto",
     TOLD(FILE_DESCRIPTOR_RESPONSE),                                                                                                                  "SamplingParams"             },
    {"service",                V1,      ASK(FILE_CONTAINING_SYMBOL),        "fractal.v1.TenantService",
     TOLD(FILE_DESCRIPTOR_RESPONSE),                                                                                                                  "fractal/v1/tenant.proto"    },
    {"method",                 V1,      ASK(FILE_CONTAINING_SYMBOL),        "fractal.v1.SchedulerService.QueueStats",
     TOLD(FILE_DESCRIPTOR_RESPONSE),                                                                                                                  "fractal/v1/scheduler.proto" },
    {"message",                V1,      ASK(FILE_CONTAINING_SYMBOL),        "fractal.v1.GenerationTask",
     TOLD(FILE_DESCRIPTOR_RESPONSE),                                                                                                                  "fractal/v1/generation.proto"},
    {"field",                  V1,      ASK(FILE_CONTAINING_SYMBOL),        "fractal.v1.GenerationTask.prompt_ids",
     TOLD(FILE_DESCRIPTOR_RESPONSE),                                                                                                                  "fractal/v1/generation.proto"},
    {"enum",                   V1,      ASK(FILE_CONTAINING_SYMBOL),        "fractal.v1.FinishReason",
     TOLD(FILE_DESCRIPTOR_RESPONSE),                                                                                                                  "fractal/v1/generation.proto"},
    {"nested enum",            V1,      ASK(FILE_CONTAINING_SYMBOL),
     "grpc.health.v1.HealthCheckResponse.ServingStatus",                                                              TOLD(FILE_DESCRIPTOR_RESPONSE),
     "grpc/health/v1/health.proto"                                                                                                                                                 },
    {"a file and its imports", V1,      ASK(FILE_CONTAINING_SYMBOL),        "fractal.v1.SchedulerService",
     TOLD(FILE_DESCRIPTOR_RESPONSE),                                                                                                                  "SamplingParams"             },
    {"imports of imports",     V1,      ASK(FILE_BY_FILENAME),              "google/rpc/status.proto",
     TOLD(FILE_DESCRIPTOR_RESPONSE),                                                                                                                  "type_url"                   },
    {"no such file",           V1,      ASK(FILE_BY_FILENAME),              "nope.proto",                             TOLD(ERROR_RESPONSE),           NULL                         },
    {"no such symbol",         V1,      ASK(FILE_CONTAINING_SYMBOL),        "fractal.v1.Tenan",                       TOLD(ERROR_RESPONSE),
     NULL                                                                                                                                                                          },
    {"package is no symbol",   V1,      ASK(FILE_CONTAINING_SYMBOL),        "fractal.v1",                             TOLD(ERROR_RESPONSE),
     NULL                                                                                                                                                                          },
    {"no such member",         V1,      ASK(FILE_CONTAINING_SYMBOL),        "fractal.v1.Tenant.nope",
     TOLD(ERROR_RESPONSE),                                                                                                                            NULL                         },
    {"extensions",             V1,      ASK(ALL_EXTENSION_NUMBERS_OF_TYPE), "fractal.v1.Tenant",
     TOLD(ERROR_RESPONSE),                                                                                                                            NULL                         },
};

struct talk {
    const struct row *row;
    struct event_base *base;
    fx_client_call *call;
    uint32_t told;
    bool done;
    enum fx_code code;
};

static ask_message ask_of(const struct row *row) {
    ask_message ask = GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT;
    ask.message_request_case = (unsigned)row->ask;
    ask.list_services = (char *)(uintptr_t)row->text; /* all of them are one union of strings */
    return ask;
}

static void send_ask(evutil_socket_t fd, short what, void *user) {
    struct talk *talk = user;
    struct timeval soon = {0, 1000};
    ask_message ask = ask_of(talk->row);
    (void)fd, (void)what;
    if (fx_client_send(talk->call, &ask) == FX_CLIENT_SEND_BUSY)
        event_base_once(talk->base, -1, EV_TIMEOUT, send_ask, talk, &soon);
}

static bool lists(const told_message *told, const char *service) {
    for (size_t i = 0; i < told->list_services_response->n_service; i++)
        if (strcmp(told->list_services_response->service[i]->name, service) == 0) return true;
    return false;
}

static bool file_has(const told_message *told, const char *text) {
    const Grpc__Reflection__V1__FileDescriptorResponse *files = told->file_descriptor_response;
    for (size_t i = 0; i < files->n_file_descriptor_proto; i++) {
        ProtobufCBinaryData file = files->file_descriptor_proto[i];
        if (memmem(file.data, file.len, text, strlen(text))) return true;
    }
    return false;
}

/* Asked three times on one stream. */
static bool on_told(void *user, const void *message) {
    struct talk *talk = user;
    const told_message *told = message;
    const struct row *row = talk->row;
    assert_int_equal(told->message_response_case, row->told);
    assert_string_equal(told->original_request->list_services, row->text);
    if (row->told == (int)TOLD(LIST_SERVICES_RESPONSE))
        assert_true(lists(told, row->want));
    else if (row->told == (int)TOLD(FILE_DESCRIPTOR_RESPONSE))
        assert_true(file_has(told, row->want));
    else
        assert_int_equal(told->error_response->error_code, FX_NOT_FOUND);
    if (++talk->told == 3)
        fx_client_half_close(talk->call);
    else
        send_ask(-1, 0, talk);
    return true;
}

static void on_done(void *user, const struct fx_client_result *result) {
    struct talk *talk = user;
    talk->done = true;
    talk->code = result->code;
    (void)event_base_loopbreak(talk->base);
}

static void test_row(void **state) {
    struct echo echo = {0};
    char target[64];
    fx_error err = {0};
    struct timeval limit = {10, 0};
    struct talk talk = {.row = *state, .base = event_base_new()};
    fx_server *server = echo_open(&echo, (struct fx_server_opts){0}, target);
    fx_client *client = echo_client(target, talk.base, 0);
    struct fx_client_request request = {
        .method = talk.row->method,
        .reply = &grpc__reflection__v1__server_reflection_response__descriptor,
        .deadline_ms = 8000,
        .user = &talk,
        .on_done = on_done,
        .on_message = on_told};
    echo_check(fx_client_start(client, &request, &talk.call, &err), &err);
    send_ask(-1, 0, &talk);
    event_base_loopexit(talk.base, &limit);
    event_base_loop(talk.base, EVLOOP_NO_EXIT_ON_EMPTY);
    assert_true(talk.done);
    assert_int_equal(talk.code, FX_OK);
    assert_int_equal(talk.told, 3);
    fx_client_free(client);
    event_base_free(talk.base);
    echo_close(&echo, server);
}

FX_TEST_MAIN(test_row, rows)
