#include "tests/integ/gateway/stage.h"
#include "common/base/hash.h"
#include "common/base/heap.h"
#include "common/base/log.h"
#include "fractal/v1/scheduler.pb-c.h"
#include "fractal/v1/slicer.pb-c.h"
#include "fractal/v1/tenant.pb-c.h"

enum { TICK_MS = 3, LEASE_MS = 60000 };

/* -- tenant and slicer -- */

static Fractal__V1__Limits limits_of(struct stage_limits *limits) {
    Fractal__V1__Limits out = FRACTAL__V1__LIMITS__INIT;
    out.requests_per_minute = limits->requests;
    out.tokens_per_minute = limits->tokens;
    out.streams = limits->streams;
    return out;
}

/* STAGE_KEY, and that with one more character: other keys of the same tenant. */
static bool key_is_good(const char *key) {
    size_t len = strlen(STAGE_KEY);
    return strncmp(key, STAGE_KEY, len) == 0 && strlen(key) <= len + 1;
}

static bool digest_is_good(fx_span digest) {
    uint8_t good[FX_SHA256_BYTES];
    char key[] = STAGE_KEY "0";
    for (char last = '0'; last <= '9'; last++) {
        key[sizeof key - 2] = last;
        fx_sha256(fx_span_str(key), good);
        if (fx_span_eq(digest, (fx_span){good, sizeof good})) return true;
    }
    fx_sha256(fx_span_str(STAGE_KEY), good);
    return fx_span_eq(digest, (fx_span){good, sizeof good});
}

static void authenticate(fx_call *call, const void *message, void *context) {
    const Fractal__V1__AuthenticateRequest *request = message;
    struct stage *stage = context;
    Fractal__V1__AuthenticateReply reply = FRACTAL__V1__AUTHENTICATE_REPLY__INIT;
    Fractal__V1__Tenant tenant = FRACTAL__V1__TENANT__INIT;
    stage->authenticated++;
    if (stage->tenant_code) {
        fx_call_fail(call, (enum fx_code)stage->tenant_code, "told to fail");
    } else if (!(*request->key
                     ? key_is_good(request->key)
                     : digest_is_good((fx_span){request->digest.data, request->digest.len}))) {
        fx_call_fail(call, FX_UNAUTHENTICATED, "no such key");
    } else {
        tenant.number = STAGE_TENANT;
        Fractal__V1__Limits of_key = limits_of(&stage->key_limits);
        Fractal__V1__Limits of_tenant = limits_of(&stage->tenant_limits);
        tenant.weight = 3;
        tenant.limits = &of_tenant;
        reply.limits = &of_key;
        reply.key_id = (char *)(uintptr_t) "0123456789abcdef";
        reply.tenant = &tenant;
        fx_call_reply(call, &reply);
    }
}

static void model_set(Fractal__V1__Model *model, char *name, uint32_t number, char *digest,
                      uint32_t *eos) {
    *model = (Fractal__V1__Model)FRACTAL__V1__MODEL__INIT;
    model->name = name;
    model->number = number;
    model->created_s = 1234;
    model->context_max = STAGE_CONTEXT;
    model->vocabulary = 260;
    model->tokenizer_digest = digest;
    model->eos_ids = eos;
    model->n_eos_ids = 1;
}

static void list_models(fx_call *call, const void *message, void *context) {
    static char names[2][32] = {STAGE_MODEL, STAGE_OTHER_MODEL}, digests[2][4] = {"d1", "d2"};
    struct stage *stage = context;
    Fractal__V1__ListModelsReply reply = FRACTAL__V1__LIST_MODELS_REPLY__INIT;
    Fractal__V1__Model models[2], *at[2];
    uint32_t eos = STAGE_EOS;
    (void)message;
    stage->listed++;
    if (stage->list_code) {
        fx_call_fail(call, (enum fx_code)stage->list_code, "told to fail");
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (i ? !stage->show_other : stage->hide_model) continue;
        at[reply.n_models] = &models[i];
        model_set(at[reply.n_models++], names[i], STAGE_NUMBER + i, digests[i], &eos);
    }
    reply.models = at;
    fx_call_reply(call, &reply);
}

static const char config_json[] =
    "{\"bos_token\":\"<|bos|>\",\"eos_token\":\"<|eos|>\",\"chat_template\":"
    "\"{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}\"}";

static void get_tokenizer(fx_call *call, const void *message, void *context) {
    const Fractal__V1__GetTokenizerRequest *request = message;
    struct stage *stage = context;
    Fractal__V1__GetTokenizerReply reply = FRACTAL__V1__GET_TOKENIZER_REPLY__INIT;
    bool other = strcmp(request->digest, "d2") == 0;
    reply.tokenizer_json.data = (uint8_t *)(other ? stage->other_tokenizer : stage->tokenizer);
    reply.tokenizer_json.len = other ? stage->other_tokenizer_len : stage->tokenizer_len;
    reply.tokenizer_config_json =
        (ProtobufCBinaryData){sizeof config_json - 1, (uint8_t *)(uintptr_t)config_json};
    fx_call_reply(call, &reply);
}

/* -- scheduler -- */

struct job {
    struct stage *stage;
    fx_call *call;
    const void *message;
};

static void on_submit(void *ctx, const struct fx_submit_result *result, const fx_error *err) {
    struct job *job = ctx;
    Fractal__V1__SubmitGenerationReply reply = FRACTAL__V1__SUBMIT_GENERATION_REPLY__INIT;
    if (err) {
        fx_call_fail_error(job->call, err);
    } else {
        reply.seed = result->seed;
        fx_call_reply(job->call, &reply);
    }
    free(job);
}

static void submit_on_loop(void *user) {
    struct job *job = user;
    struct stage *stage = job->stage;
    const Fractal__V1__GenerationTask *task =
        ((const Fractal__V1__SubmitGenerationRequest *)job->message)->task;
    fx_error err = {0};
    pthread_mutex_lock(&stage->lock);
    stage->last_task_len = fractal__v1__generation_task__pack(task, stage->last_task);
    struct fx_submit submit = {
        .model = task->model,
        .tenant = task->tenant,
        .seed = 99,
        .prompt_tokens = (uint32_t)task->n_prompt_ids,
        .expected_tokens = task->max_tokens,
        .task = {stage->last_task, stage->last_task_len},
        .about = {stage->last_task, stage->last_task_len},
    };
    memcpy(submit.id.bytes, task->id.data, FX_GEN_ID_BYTES);
    bool ok = fx_queue_submit(stage->queue, &submit, on_submit, job, &err);
    pthread_mutex_unlock(&stage->lock);
    if (ok) return;
    fx_call_fail_error(job->call, &err);
    free(job);
}

static void submit(fx_call *call, const void *message, void *context) {
    struct stage *stage = context;
    stage->submitted++;
    if (stage->submit_code && stage->submitted > stage->submit_good) {
        fx_call_trailer(call, "retry-after-ms", "2500");
        fx_call_fail(call, (enum fx_code)stage->submit_code, "told to fail");
        return;
    }
    struct job *job = fx_alloc(1, sizeof *job);
    *job = (struct job){stage, call, message};
    assert_true(fx_loop_post(stage->loop, submit_on_loop, job));
}

static void on_cancel(void *ctx, const struct fx_gen_info *info, const fx_error *err) {
    struct job *job = ctx;
    Fractal__V1__CancelGenerationReply reply = FRACTAL__V1__CANCEL_GENERATION_REPLY__INIT;
    if (err) {
        fx_call_fail_error(job->call, err);
    } else {
        reply.state = (Fractal__V1__GenerationState)info->state;
        fx_call_reply(job->call, &reply);
    }
    free(job);
}

static void cancel_on_loop(void *user) {
    struct job *job = user;
    const Fractal__V1__CancelGenerationRequest *request = job->message;
    fx_gen_id id;
    fx_error err = {0};
    memcpy(id.bytes, request->id.data, FX_GEN_ID_BYTES);
    if (fx_queue_cancel(job->stage->queue, request->model, &id, on_cancel, job, &err)) return;
    fx_call_fail_error(job->call, &err);
    free(job);
}

static void cancel(fx_call *call, const void *message, void *context) {
    struct stage *stage = context;
    stage->cancelled++;
    struct job *job = fx_alloc(1, sizeof *job);
    *job = (struct job){stage, call, message};
    assert_true(fx_loop_post(stage->loop, cancel_on_loop, job));
}

static const struct fx_method methods[] = {
    {"/fractal.v1.TenantService/Authenticate",         authenticate,
     &fractal__v1__authenticate_request__descriptor,       FX_RPC_UNARY, 0, 4096   },
    {"/fractal.v1.SlicerService/ListModels",           list_models,
     &fractal__v1__list_models_request__descriptor,        FX_RPC_UNARY, 0, 4096   },
    {"/fractal.v1.SlicerService/GetTokenizer",         get_tokenizer,
     &fractal__v1__get_tokenizer_request__descriptor,      FX_RPC_UNARY, 0, 4096   },
    {"/fractal.v1.SchedulerService/SubmitGeneration",  submit,
     &fractal__v1__submit_generation_request__descriptor,  FX_RPC_UNARY, 0, 65536  },
    {"/fractal.v1.SchedulerService/SubmitGenerations", stage__submit_generations,
     &fractal__v1__submit_generations_request__descriptor, FX_RPC_UNARY, 0, 1 << 20},
    {"/fractal.v1.SchedulerService/CancelGeneration",  cancel,
     &fractal__v1__cancel_generation_request__descriptor,  FX_RPC_UNARY, 0, 4096   },
};

/* -- life -- */

static void tokenizer_read(struct stage *stage) {
    FILE *file = fopen(FX_SOURCE_DIR "/models/fractal-tiny-moe/tokenizer.json", "rbe");
    assert_non_null(file);
    stage->tokenizer = calloc(1, 1 << 20);
    stage->tokenizer_len = fread(stage->tokenizer, 1, 1 << 20, file);
    fclose(file);
}

static void check(bool ok, const fx_error *err) {
    if (!ok) fail_msg("%s", err->text);
}

void stage_gateway_open(struct stage *stage) {
    fx_error err = {0};
    check(gw_process_open(&stage->config, &stage->process, &err), &err);
    stage->gateway = &stage->process->loops[0];
    for (int i = 0; i < 1000 && !gw_process_listed(stage->process); i++)
        usleep(5000);
    for (int i = 0; i < 1000 && !gw_process_redis_ready(stage->process); i++)
        usleep(5000);
    for (int i = 0; i < 1000 && !fx_server_serving(stage->process->rpc); i++)
        usleep(5000);
    for (uint32_t i = 0; i < stage->process->loop_count; i++) /* revocations are heard */
        for (int j = 0; j < 2000 && !stage->process->loops[i].metrics.auth_drops; j++)
            usleep(5000);
    assert_true(gw_process_listed(stage->process) && gw_process_redis_ready(stage->process));
    assert_true(fx_server_serving(stage->process->rpc));
}

void stage_gateway_close(struct stage *stage) {
    gw_process_close(stage->process);
    stage->process = NULL;
    stage->gateway = NULL;
}

static void config_set(struct stage *stage) {
    (void)snprintf(stage->address, sizeof stage->address, "127.0.0.1:%u",
                   fx_server_port(stage->server));
    stage->config = (struct gw_config){
        .http_addr = "127.0.0.1:0",
        .grpc_addr = "127.0.0.1:0",
        .admin_addr = "127.0.0.1:0",
        .log_level = "error",
        .tenant_addr = stage->address,
        .scheduler_addr = stage->address,
        .slicer_addr = stage->address,
        .redis_url = stage->redis_server.url,
        .redis_ledger_url = "",
        .tls_ca = "",
        .tls_cert = "",
        .tls_key = "",
        .http_tls_cert = "",
        .http_tls_key = "",
        .cors_origins = "",
        .ping_ms = 10000,
        .connections_max = 256,
        .body_bytes_max = 100000,
        .stall_ms_max = 20000,
        .health = {5000, 5000, 30000},
        .limit_lease_ms = 1500,
        .unread_bytes = 65536,
        .unread_ms_max = 30000,
        .http_loops = 1
    };
}

static void worker_open(struct stage *stage) {
    struct timeval every = {0, TICK_MS * 1000};
    fx_error err = {0};
    check(fx_loop_open(1024, &stage->loop, &err), &err);
    struct event_base *base = fx_loop_base(stage->loop);
    struct fx_redis_opts redis = {
        .base = base, .url = stage->redis_server.url, .library = fx_queue_library()};
    check(fx_redis_open(&redis, &stage->redis, &err), &err);
    check(fx_redis_wait_ready(stage->redis, 5000, &err), &err);
    struct fx_queue_opts queue = {.redis = stage->redis, .lease_ms = LEASE_MS};
    check(fx_queue_open(&queue, &stage->queue, &err), &err);
    check(fx_queue_wait_tasks(stage->queue, STAGE_NUMBER, stage__worker_event, stage, &stage->work,
                              &err),
          &err);
    stage->tick = event_new(base, -1, EV_PERSIST, stage__worker_tick, stage);
    assert_int_equal(event_add(stage->tick, &every), 0);
    check(fx_loop_start(stage->loop, &err), &err);
}

int stage_setup(void **state) {
    struct stage *stage = calloc(1, sizeof *stage);
    fx_error err = {0};
    struct fx_server_opts opts = {
        .address = "127.0.0.1:0", .context = stage, .message_bytes_max = 64 << 20};
    fx_log_level_min(FX_LOG_ERROR);
    (void)signal(SIGPIPE, SIG_IGN); /* as the program does */
    (void)pthread_mutex_init(&stage->lock, NULL);
    stage->slots = 16;
    stage->script = (struct stage_script){.bytes = "Hello", .len = 5, .finish = FX_FINISH_STOP};
    tokenizer_read(stage);
    redis_fixture_start(&stage->redis_server, NULL);
    worker_open(stage);
    check(fx_server_open(&opts, methods, FX_TEST_COUNT(methods), &stage->server, &err), &err);
    fx_server_set_serving(stage->server, true);
    config_set(stage);
    stage_gateway_open(stage);
    *state = stage;
    return 0;
}

int stage_teardown(void **state) {
    struct stage *stage = *state;
    stage_gateway_close(stage);
    fx_server_free(stage->server);
    fx_loop_stop(stage->loop);
    event_free(stage->tick);
    fx_work_free(stage->work);
    fx_queue_free(stage->queue);
    fx_redis_free(stage->redis);
    fx_loop_free(stage->loop);
    redis_fixture_stop(&stage->redis_server);
    pthread_mutex_destroy(&stage->lock);
    free(stage->tokenizer);
    free(stage->other_tokenizer);
    free(stage);
    return 0;
}

void stage_say(struct stage *stage, struct stage_script script) {
    pthread_mutex_lock(&stage->lock);
    stage->script = script;
    pthread_mutex_unlock(&stage->lock);
}

bool stage_wait(atomic_int *counter, int want) {
    for (int i = 0; i < 5000 && *counter != want; i++)
        usleep(1000);
    return *counter == want;
}
