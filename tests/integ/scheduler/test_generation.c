/* A generation's way through a real scheduler, with the test as its worker. */
#include <signal.h>
#include <sys/wait.h>
#include "common/model/store.h"
#include "tests/integ/scheduler/stage.h"

static const uint32_t tokens[] = {11, 12, 13};

static void from_submit_to_finish(struct stage *stage) {
    struct stage_process *scheduler = &stage->process[0];
    uint64_t seed = 0;
    rig_beat(&stage->rig, "w", 2);
    assert_int_equal(stage_submit(scheduler, 1, &seed), FX_OK);
    struct rig_tasks tasks = stage_pull(stage, 2);
    assert_int_equal(tasks.count, 1);
    assert_int_equal(stage_state(scheduler, 1), FX_GEN_RUNNING);
    assert_int_equal(rig_append(&stage->rig, 1, 1, 1, tokens, 3).status, FX_QUEUE_OK);
    assert_int_equal(rig_finish(&stage->rig, 1, 1, 3, FX_FINISH_LENGTH).status, FX_QUEUE_OK);
    Fractal__V1__GetGenerationRequest request = FRACTAL__V1__GET_GENERATION_REQUEST__INIT;
    Fractal__V1__Generation *reply;
    fx_gen_id id = rig_id(1);
    request.id = (ProtobufCBinaryData){FX_GEN_ID_BYTES, id.bytes};
    request.model = RIG_MODEL;
    assert_int_equal(STAGE_CALL(scheduler, "GetGeneration", &request, generation, &reply, NULL),
                     FX_OK);
    assert_int_equal(reply->state, FX_GEN_FINISHED);
    assert_int_equal(reply->finish_reason, FX_FINISH_LENGTH);
    assert_int_equal(reply->tokens, 3);
    assert_int_equal(reply->epoch, 1);
    assert_string_equal(reply->worker, "w");
}

struct pulled {
    Fractal__V1__GenerationTask *task;
    bool done;
};

static void on_tasks(void *ctx, const struct fx_task *tasks, size_t count, const fx_error *err) {
    struct pulled *pulled = ctx;
    assert_null(err);
    if (count)
        pulled->task =
            fractal__v1__generation_task__unpack(NULL, tasks[0].task.len, tasks[0].task.at);
    pulled->done = true;
}

static void the_task_arrives_whole(struct stage *stage) {
    struct pulled pulled = {0};
    uint64_t seed = 0;
    fx_error err = {0};
    struct fx_pull pull = {RIG_MODEL, "w", "", 1, false};
    rig_beat(&stage->rig, "w", 2);
    assert_int_equal(stage_submit(&stage->process[0], 1, &seed), FX_OK);
    for (int i = 0; i < 200 && !pulled.task; i++) {
        pulled.done = false;
        assert_true(fx_queue_pull(stage->rig.queue, &pull, on_tasks, &pulled, &err));
        rig_until(&stage->rig, &pulled.done);
    }
    assert_non_null(pulled.task);
    assert_int_equal(pulled.task->n_prompt_ids, 8);
    assert_int_equal(pulled.task->prompt_ids[7], 8);
    assert_int_equal(pulled.task->max_tokens, 16);
    assert_true(pulled.task->sampling->seed == seed);
    assert_true(pulled.task->submitted_ms > 0);
    fractal__v1__generation_task__free_unpacked(pulled.task, NULL);
}

static enum fx_code cancel(struct stage_process *scheduler, uint32_t n,
                           Fractal__V1__GenerationState *state) {
    Fractal__V1__CancelGenerationRequest request = FRACTAL__V1__CANCEL_GENERATION_REQUEST__INIT;
    Fractal__V1__CancelGenerationReply *reply;
    fx_gen_id id = rig_id(n);
    request.id = (ProtobufCBinaryData){FX_GEN_ID_BYTES, id.bytes};
    request.model = RIG_MODEL;
    enum fx_code code =
        STAGE_CALL(scheduler, "CancelGeneration", &request, cancel_generation_reply, &reply, NULL);
    if (code == FX_OK) *state = reply->state;
    return code;
}

static void cancels(struct stage *stage) {
    struct stage_process *scheduler = &stage->process[0];
    Fractal__V1__GenerationState state = 0;
    rig_beat(&stage->rig, "w", 1);
    assert_int_equal(cancel(scheduler, 1, &state), FX_NOT_FOUND);
    (void)stage_submit(scheduler, 1, NULL);
    assert_int_equal(stage_pull(stage, 1).count, 1);
    (void)stage_submit(scheduler, 2, NULL);
    assert_int_equal(cancel(scheduler, 2, &state), FX_OK);
    assert_int_equal(state, FX_GEN_CANCELLED);
    assert_int_equal(cancel(scheduler, 1, &state), FX_OK);
    assert_int_equal(state, FX_GEN_RUNNING);
    assert_int_equal(rig_append(&stage->rig, 1, 1, 1, tokens, 1).status, FX_QUEUE_CANCELLED);
    (void)rig_finish(&stage->rig, 1, 1, 0, FX_FINISH_CANCELLED);
    assert_int_equal(cancel(scheduler, 1, &state), FX_OK);
    assert_int_equal(state, FX_GEN_CANCELLED);
}

static void bad_ids(struct stage *stage) {
    Fractal__V1__GetGenerationRequest request = FRACTAL__V1__GET_GENERATION_REQUEST__INIT;
    void *reply;
    uint8_t id[17] = {0};
    request.model = RIG_MODEL;
    for (size_t len = 0; len <= 17; len += 1) {
        request.id = (ProtobufCBinaryData){len, id};
        assert_int_equal(
            STAGE_CALL(&stage->process[0], "GetGeneration", &request, generation, &reply, NULL),
            len == 16 ? FX_NOT_FOUND : FX_INVALID_ARGUMENT);
    }
}

static Fractal__V1__RegisterWorkerRequest beat_of(const char *worker) {
    Fractal__V1__RegisterWorkerRequest request = FRACTAL__V1__REGISTER_WORKER_REQUEST__INIT;
    request.worker = (char *)(uintptr_t)worker;
    request.model_name = (char *)(uintptr_t) "org/other";
    request.model = fx_model_number("org/other");
    request.slots = request.slots_free = 3;
    request.context_max = 99;
    request.numerics_id = (char *)(uintptr_t) "exact/1";
    return request;
}

static void registers_workers(struct stage *stage) {
    struct stage_process *scheduler = &stage->process[0];
    Fractal__V1__RegisterWorkerRequest beat = beat_of("00112233445566778899aabbccddeeff");
    Fractal__V1__QueueStatsRequest all = FRACTAL__V1__QUEUE_STATS_REQUEST__INIT;
    Fractal__V1__QueueStatsReply *stats;
    void *reply;
    assert_int_equal(
        STAGE_CALL(scheduler, "RegisterWorker", &beat, register_worker_reply, &reply, NULL), FX_OK);
    assert_int_equal(STAGE_CALL(scheduler, "QueueStats", &all, queue_stats_reply, &stats, NULL),
                     FX_OK);
    assert_int_equal(stats->n_queues, 1);
    assert_int_equal(stats->queues[0]->model, beat.model);
    assert_string_equal(stats->queues[0]->model_name, "org/other");
    assert_int_equal(stats->queues[0]->workers, 1);
    assert_int_equal(stats->queues[0]->slots_free, 3);
    beat.leaving = true;
    assert_int_equal(
        STAGE_CALL(scheduler, "RegisterWorker", &beat, register_worker_reply, &reply, NULL), FX_OK);
    assert_int_equal(STAGE_CALL(scheduler, "QueueStats", &all, queue_stats_reply, &stats, NULL),
                     FX_OK);
    assert_int_equal(stats->n_queues, 0);
}

static void refuses_bad_workers(struct stage *stage) {
    Fractal__V1__RegisterWorkerRequest bad[5];
    void *reply;
    for (size_t i = 0; i < 5; i++)
        bad[i] = beat_of("00112233445566778899aabbccddeeff");
    bad[0].worker = (char *)(uintptr_t) "0011";
    bad[1].worker = (char *)(uintptr_t) "00112233445566778899aabbccddee g";
    bad[2].model++;
    bad[3].model_name = (char *)(uintptr_t) "";
    bad[4].slots_free = 4;
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(STAGE_CALL(&stage->process[0], "RegisterWorker", &bad[i],
                                    register_worker_reply, &reply, NULL),
                         FX_INVALID_ARGUMENT);
}

static void stats_of_one_model(struct stage *stage) {
    struct stage_process *scheduler = &stage->process[0];
    Fractal__V1__QueueStatsRequest request = FRACTAL__V1__QUEUE_STATS_REQUEST__INIT;
    Fractal__V1__QueueStatsReply *stats;
    request.model = RIG_MODEL;
    rig_beat(&stage->rig, "w", 2);
    for (uint32_t n = 1; n <= 5; n++)
        assert_int_equal(stage_submit(scheduler, n, NULL), FX_OK);
    assert_true(stage_pull(stage, 1).count == 1);
    assert_int_equal(STAGE_CALL(scheduler, "QueueStats", &request, queue_stats_reply, &stats, NULL),
                     FX_OK);
    assert_int_equal(stats->n_queues, 1);
    assert_int_equal(stats->queues[0]->running, 1);
    assert_int_equal(stats->queues[0]->waiting, 4);
    request.model = 12345;
    assert_int_equal(STAGE_CALL(scheduler, "QueueStats", &request, queue_stats_reply, &stats, NULL),
                     FX_OK);
    assert_int_equal(stats->queues[0]->waiting + stats->queues[0]->workers, 0);
}

static void an_expired_lease_goes_on(struct stage *stage) {
    struct stage_process *scheduler = &stage->process[0];
    rig_beat(&stage->rig, "w", 2);
    (void)stage_submit(scheduler, 1, NULL);
    assert_int_equal(stage_pull(stage, 1).at[0].epoch, 1);
    (void)rig_append(&stage->rig, 1, 1, 1, tokens, 2);
    rig_expire(&stage->rig, 1);
    struct rig_tasks again = stage_pull(stage, 1); /* by the scheduler's own reclaim loop */
    assert_int_equal(again.count, 1);
    assert_int_equal(again.at[0].epoch, 2);
    assert_int_equal(again.at[0].logged_count, 2);
    assert_int_equal(rig_append(&stage->rig, 1, 1, 3, tokens + 2, 1).status, FX_QUEUE_LEASE_LOST);
    assert_int_equal(rig_append(&stage->rig, 1, 2, 3, tokens + 2, 1).status, FX_QUEUE_OK);
    assert_int_equal(rig_finish(&stage->rig, 1, 2, 3, FX_FINISH_STOP).status, FX_QUEUE_OK);
    assert_true(stage_log_until(scheduler, "event=reclaimed"));
}

static void gives_up_in_the_end(struct stage *stage) {
    struct stage_process *scheduler = &stage->process[0];
    rig_beat(&stage->rig, "w", 2);
    (void)stage_submit(scheduler, 1, NULL);
    for (uint32_t epoch = 1; epoch <= 2; epoch++) {
        assert_int_equal(stage_pull(stage, 1).at[0].epoch, epoch);
        rig_expire(&stage->rig, 1);
    }
    for (int i = 0; i < 100 && stage_state(scheduler, 1) != FX_GEN_FAILED; i++)
        rig_sleep(&stage->rig, 20);
    assert_int_equal(stage_state(scheduler, 1), FX_GEN_FAILED);
    assert_int_equal(rig_log(&stage->rig, 1).finish, FX_FINISH_ERROR);
}

/* Both admit, dispatch and reclaim; every generation ends once, slots are never over-filled. */
static void two_schedulers(struct stage *stage) {
    enum { COUNT = 60, SLOTS = 4 };
    static uint32_t ended[COUNT];
    memset(ended, 0, sizeof ended);
    rig_beat(&stage->rig, "w", SLOTS);
    for (uint32_t n = 0; n < 30; n++)
        assert_int_equal(stage_submit(&stage->process[n % 2], n, NULL), FX_OK);
    uint32_t total = 0, next = 30;
    while (total < COUNT) {
        struct fx_queue_stats stats = rig_stats(&stage->rig);
        assert_true(stats.running + (stats.waiting - stats.backlog) <= SLOTS);
        struct rig_tasks tasks = stage_pull(stage, SLOTS);
        assert_true(tasks.count > 0 && tasks.count <= SLOTS);
        for (size_t i = 0; i < tasks.count; i++, total++) {
            uint32_t n = rig_number(&tasks.at[i].id);
            assert_int_equal(ended[n]++, 0);
            (void)rig_append(&stage->rig, n, 1, 1, tokens, 3);
            assert_int_equal(rig_finish(&stage->rig, n, 1, 3, FX_FINISH_STOP).status, FX_QUEUE_OK);
            if (next < COUNT) {
                assert_int_equal(stage_submit(&stage->process[next % 2], next, NULL), FX_OK);
                next++;
            }
        }
        rig_beat(&stage->rig, "w", SLOTS);
    }
    assert_int_equal(rig_stats(&stage->rig).waiting, 0);
    assert_int_equal(rig_lag(&stage->rig), 0);
}

/* kill -9 of one with its backlog: the other goes on, the admitted ones are all run. */
static void a_killed_scheduler_loses_nothing(struct stage *stage) {
    enum { COUNT = 40 };
    bool admitted[COUNT] = {false}, ended[COUNT] = {false};
    rig_beat(&stage->rig, "w", 4);
    for (uint32_t n = 0; n < COUNT; n++) {
        if (n == COUNT / 2) stage_kill(&stage->process[0]);
        struct stage_process *process = &stage->process[n < COUNT / 2 ? 0 : 1];
        admitted[n] = stage_submit(process, n, NULL) == FX_OK;
        assert_true(admitted[n]);
    }
    for (uint32_t total = 0; total < COUNT;) {
        struct rig_tasks tasks = stage_pull(stage, 4);
        assert_true(tasks.count > 0);
        for (size_t i = 0; i < tasks.count; i++, total++) {
            uint32_t n = rig_number(&tasks.at[i].id);
            assert_false(ended[n]);
            ended[n] = true;
            (void)rig_finish(&stage->rig, n, 1, 0, FX_FINISH_STOP);
        }
        rig_beat(&stage->rig, "w", 4);
    }
    for (uint32_t n = 0; n < COUNT; n++)
        assert_int_equal(stage_state(&stage->process[1], n), FX_GEN_FINISHED);
}

static void a_new_scheduler_goes_on(struct stage *stage) {
    rig_beat(&stage->rig, "w", 0);
    for (uint32_t n = 0; n < 5; n++)
        assert_int_equal(stage_submit(&stage->process[0], n, NULL), FX_OK);
    stage_kill(&stage->process[0]);
    rig_beat(&stage->rig, "w", 5);
    assert_int_equal(rig_pull(&stage->rig, "w", 5).count, 0);
    stage_start(stage, 0, NULL);
    uint32_t total = 0;
    for (int i = 0; i < 5 && total < 5; i++)
        total += (uint32_t)stage_pull(stage, 5).count;
    assert_int_equal(total, 5);
}

static const struct stage_row rows[] = {
    {"from submit to finish",            from_submit_to_finish,            {NULL},                        false},
    {"the task arrives whole",           the_task_arrives_whole,           {NULL},                        false},
    {"cancels",                          cancels,                          {NULL},                        false},
    {"bad ids",                          bad_ids,                          {NULL},                        false},
    {"registers workers",                registers_workers,                {NULL},                        false},
    {"refuses bad workers",              refuses_bad_workers,              {NULL},                        false},
    {"stats of one model",               stats_of_one_model,               {NULL},                        false},
    {"an expired lease goes on",         an_expired_lease_goes_on,         {NULL},                        false},
    {"gives up in the end",              gives_up_in_the_end,              {"FX_DELIVERIES_MAX=2", NULL}, false},
    {"two schedulers",                   two_schedulers,                   {NULL},                        true },
    {"a killed scheduler loses nothing", a_killed_scheduler_loses_nothing, {NULL},                        true },
    {"a new scheduler goes on",          a_new_scheduler_goes_on,          {NULL},                        false},
};
STAGE_MAIN(rows)
