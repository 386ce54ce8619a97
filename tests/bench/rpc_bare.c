#include "tests/bench/rpc_bare.h"
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/time.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/base/heap.h"
#include "common/base/span.h"
#include "tests/bench/child.h"

enum { CALLS = 64, THREADS_MAX = 16, DEADLINE_S = 10 };

/* -- server -- */

struct bare_server {
    grpc_server *core;
    void *method;
};

/* One call at a time; reused. Two tags: it arrived, it is over. */
struct bare_call {
    struct bare_server *server;
    grpc_completion_queue *cq;
    grpc_call *rpc;
    grpc_metadata_array metadata;
    gpr_timespec deadline;
    grpc_byte_buffer *message;
    int cancelled;
    bool answering;
};

static void call_wait(struct bare_call *call) {
    call->answering = false;
    grpc_metadata_array_init(&call->metadata);
    grpc_call_error rc = grpc_server_request_registered_call(
        call->server->core, call->server->method, &call->rpc, &call->deadline, &call->metadata,
        &call->message, call->cq, call->cq, call);
    FX_ASSERT(rc == GRPC_CALL_OK);
}

static void call_answer(struct bare_call *call) {
    grpc_op ops[4] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                      {.op = GRPC_OP_SEND_MESSAGE},
                      {.op = GRPC_OP_SEND_STATUS_FROM_SERVER},
                      {.op = GRPC_OP_RECV_CLOSE_ON_SERVER}};
    ops[1].data.send_message.send_message = call->message;
    ops[3].data.recv_close_on_server.cancelled = &call->cancelled;
    call->answering = true;
    grpc_call_error rc = grpc_call_start_batch(call->rpc, ops, FX_COUNT(ops), call, NULL);
    FX_ASSERT(rc == GRPC_CALL_OK);
}

static void call_over(struct bare_call *call) {
    grpc_byte_buffer_destroy(call->message);
    grpc_metadata_array_destroy(&call->metadata);
    grpc_call_unref(call->rpc);
    call_wait(call);
}

static void *queue_run(void *cq) {
    for (;;) {
        grpc_event event =
            grpc_completion_queue_next(cq, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        if (event.type == GRPC_QUEUE_SHUTDOWN) return NULL;
        struct bare_call *call = event.tag;
        (call->answering ? call_over : call_answer)(call);
    }
}

void bare_serve(int tell, void *threads) {
    static struct bare_call calls[CALLS];
    int count = *(int *)threads;
    pthread_t thread;
    grpc_completion_queue *cqs[THREADS_MAX];
    FX_ASSERT(count <= THREADS_MAX);
    grpc_init();
    struct bare_server server = {.core = grpc_server_create(NULL, NULL)};
    for (int i = 0; i < count; i++) {
        cqs[i] = grpc_completion_queue_create_for_next(NULL);
        grpc_server_register_completion_queue(server.core, cqs[i], NULL);
    }
    server.method = grpc_server_register_method(server.core, BARE_METHOD, NULL,
                                                GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
    grpc_server_credentials *plain = grpc_insecure_server_credentials_create();
    int port = grpc_server_add_http2_port(server.core, "127.0.0.1:0", plain);
    FX_ASSERT(port > 0);
    grpc_server_start(server.core);
    for (int i = 0; i < CALLS; i++) {
        calls[i] = (struct bare_call){.server = &server, .cq = cqs[i % count]};
        call_wait(&calls[i]);
    }
    for (int i = 0; i < count; i++)
        FX_ASSERT(pthread_create(&thread, NULL, queue_run, cqs[i]) == 0);
    bench_child_tell(tell, (uint16_t)port);
    for (;;)
        (void)pause();
}

/* -- client -- */

struct bare_client {
    grpc_channel *channel;
    grpc_completion_queue *cq;
    void *method;
};

bool bare_open(uint16_t port, struct bare_client **out, fx_error *err) {
    char target[32];
    struct bare_client *client = fx_alloc(1, sizeof *client);
    if (!client) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a client");
    (void)snprintf(target, sizeof target, "127.0.0.1:%u", port);
    grpc_init();
    grpc_channel_credentials *plain = grpc_insecure_credentials_create();
    client->channel = grpc_channel_create(target, plain, NULL);
    grpc_channel_credentials_release(plain);
    client->cq = grpc_completion_queue_create_for_next(NULL);
    client->method = grpc_channel_register_call(client->channel, BARE_METHOD, NULL, NULL);
    *out = client;
    return true;
}

struct answer {
    grpc_metadata_array initial, trailing;
    grpc_byte_buffer *message;
    grpc_status_code status;
    grpc_slice details;
};

static void ops_fill(grpc_op *ops, grpc_byte_buffer *message, struct answer *answer) {
    ops[0] = (grpc_op){.op = GRPC_OP_SEND_INITIAL_METADATA};
    ops[1] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE};
    ops[1].data.send_message.send_message = message;
    ops[2] = (grpc_op){.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
    ops[3] = (grpc_op){.op = GRPC_OP_RECV_INITIAL_METADATA};
    ops[3].data.recv_initial_metadata.recv_initial_metadata = &answer->initial;
    ops[4] = (grpc_op){.op = GRPC_OP_RECV_MESSAGE};
    ops[4].data.recv_message.recv_message = &answer->message;
    ops[5] = (grpc_op){.op = GRPC_OP_RECV_STATUS_ON_CLIENT};
    ops[5].data.recv_status_on_client.trailing_metadata = &answer->trailing;
    ops[5].data.recv_status_on_client.status = &answer->status;
    ops[5].data.recv_status_on_client.status_details = &answer->details;
}

static grpc_status_code answer_end(struct answer *answer, size_t *len) {
    *len = answer->message ? grpc_byte_buffer_length(answer->message) : 0;
    if (answer->message) grpc_byte_buffer_destroy(answer->message);
    grpc_metadata_array_destroy(&answer->initial);
    grpc_metadata_array_destroy(&answer->trailing);
    grpc_slice_unref(answer->details);
    return answer->status;
}

bool bare_call(struct bare_client *client, const void *bytes, size_t len, fx_error *err) {
    struct answer answer = {0};
    grpc_op ops[6];
    size_t got;
    gpr_timespec deadline =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(DEADLINE_S, GPR_TIMESPAN));
    grpc_slice slice = grpc_slice_from_copied_buffer(bytes, len);
    grpc_byte_buffer *message = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_call *call = grpc_channel_create_registered_call(
        client->channel, NULL, GRPC_PROPAGATE_DEFAULTS, client->cq, client->method, deadline, NULL);
    grpc_metadata_array_init(&answer.initial);
    grpc_metadata_array_init(&answer.trailing);
    ops_fill(ops, message, &answer);
    grpc_call_error rc = grpc_call_start_batch(call, ops, FX_COUNT(ops), client, NULL);
    FX_ASSERT(rc == GRPC_CALL_OK);
    (void)grpc_completion_queue_next(client->cq, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    grpc_byte_buffer_destroy(message);
    grpc_slice_unref(slice);
    grpc_call_unref(call);
    if (answer_end(&answer, &got) == GRPC_STATUS_OK && got == len) return true;
    return fx_fail(err, FX_UNAVAILABLE, "the bare echo failed with status %d", answer.status);
}

void bare_close(struct bare_client *client) {
    if (!client) return;
    grpc_channel_destroy(client->channel);
    grpc_completion_queue_shutdown(client->cq);
    (void)grpc_completion_queue_next(client->cq, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    grpc_completion_queue_destroy(client->cq);
    free(client);
    grpc_shutdown_blocking();
}
