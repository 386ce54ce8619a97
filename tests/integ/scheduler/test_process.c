/* The process: start, probes, Redis away and back, drain. */
#include <signal.h>
#include <sys/wait.h>
#include "tests/integ/scheduler/stage.h"

static void probes(struct stage *stage) {
    char body[16384];
    struct stage_process *scheduler = &stage->process[0];
    assert_int_equal(stage_get(scheduler, "/livez", body, sizeof body), 200);
    assert_int_equal(stage_get(scheduler, "/readyz", body, sizeof body), 200);
    assert_int_equal(stage_get(scheduler, "/metrics", body, sizeof body), 200);
    assert_non_null(strstr(body, "fx_scheduler_redis_up 1\n"));
}

static void redis_away_and_back(struct stage *stage) {
    char body[16384];
    struct stage_process *scheduler = &stage->process[0];
    rig_beat(&stage->rig, "w", 1);
    assert_int_equal(stage_submit(scheduler, 1, NULL), FX_OK);
    redis_fixture_kill(&stage->rig.server);
    assert_true(stage_log_until(scheduler, "event=redis_lost"));
    rig_sleep(&stage->rig, 50); /* the test's own client sees it too */
    assert_int_equal(stage_get(scheduler, "/readyz", body, sizeof body), 503);
    assert_non_null(strstr(body, "Redis"));
    assert_int_equal(stage_get(scheduler, "/livez", body, sizeof body), 200);
    assert_int_equal(stage_submit(scheduler, 2, NULL), FX_UNAVAILABLE);
    scheduler->log[0] = 0;
    redis_fixture_restart(&stage->rig.server, NULL);
    assert_true(stage_log_until(scheduler, "event=redis_ready"));
    assert_int_equal(stage_get(scheduler, "/readyz", body, sizeof body), 200);
    fx_error err = {0};
    assert_true(fx_redis_wait_ready(stage->rig.redis, 3000, &err));
    rig_beat(&stage->rig, "w", 1);
    assert_int_equal(stage_pull(stage, 1).count, 1); /* it was acknowledged: it is there */
    assert_int_equal(stage_submit(scheduler, 2, NULL), FX_OK);
}

struct retry {
    uint32_t retry_after_ms;
    enum fx_code code;
    bool done;
};

static void on_done(void *user, const struct fx_client_result *result) {
    struct retry *retry = user;
    retry->retry_after_ms = result->retry_after_ms;
    retry->code = result->code;
    retry->done = true;
}

static struct retry submit_async(struct stage *stage, uint32_t n) {
    struct retry retry = {0};
    struct stage_submission submission;
    fx_client *client = NULL;
    fx_error err = {0};
    char target[64];
    (void)snprintf(target, sizeof target, "127.0.0.1:%u", stage->process[0].port);
    struct fx_client_opts opts = {
        .target = target, .base = stage->rig.base, .attempts_max = 1, .health_check_off = true};
    assert_true(fx_client_open(&opts, &client, &err));
    stage_submission(&submission, n);
    struct fx_client_request request = {.method = "/fractal.v1.SchedulerService/SubmitGeneration",
                                        .message = &submission.request,
                                        .reply = &fractal__v1__submit_generation_reply__descriptor,
                                        .deadline_ms = 5000,
                                        .wait_for_ready = true,
                                        .user = &retry,
                                        .on_done = on_done};
    assert_true(fx_client_start(client, &request, NULL, &err));
    rig_until(&stage->rig, &retry.done);
    fx_client_free(client);
    return retry;
}

static void says_when_to_try_again(struct stage *stage) {
    struct retry retry = submit_async(stage, 1);
    assert_int_equal(retry.code, FX_UNAVAILABLE); /* no worker */
    assert_in_range(retry.retry_after_ms, 100, 60000);
    rig_beat(&stage->rig, "w", 0);
    assert_int_equal(submit_async(stage, 1).code, FX_OK);
    retry = submit_async(stage, 2);
    assert_int_equal(retry.code, FX_RESOURCE_EXHAUSTED); /* full */
    assert_in_range(retry.retry_after_ms, 100, 60000);
}

static void drains(struct stage *stage) {
    struct stage_process *scheduler = &stage->process[0];
    rig_beat(&stage->rig, "w", 1);
    assert_int_equal(stage_submit(scheduler, 1, NULL), FX_OK);
    (void)kill(scheduler->pid, SIGTERM);
    int status = stage_wait(scheduler);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_non_null(strstr(scheduler->log, "event=draining"));
}

static void drains_without_redis(struct stage *stage) {
    struct stage_process *scheduler = &stage->process[0];
    redis_fixture_kill(&stage->rig.server);
    assert_true(stage_log_until(scheduler, "event=redis_lost"));
    (void)kill(scheduler->pid, SIGTERM);
    assert_int_equal(stage_wait(scheduler), 0);
}

static void refused_starts(struct stage *stage) {
    char taken[64];
    (void)snprintf(taken, sizeof taken, "FX_GRPC_ADDR=127.0.0.1:%u", stage->process[0].port);
    const struct {
        const char *env[4], *argument, *says;
        int status;
    } cases[] = {
        {{"FX_LEASE_MS=5", NULL},                                       NULL,         "FX_LEASE_MS",       1},
        {{"FX_REDIS_URL=http://x", NULL},                               NULL,         "FX_REDIS_URL",      1},
        {{"FX_NONSENSE=1", NULL},                                       NULL,         "FX_NONSENSE",       1},
        {{taken, "FX_ADMIN_ADDR=127.0.0.1:0", NULL},                    NULL,         "FX_GRPC_ADDR",      1},
        {{"FX_GRPC_ADDR=0.0.0.0:0", "FX_ADMIN_ADDR=127.0.0.1:0", NULL}, NULL,         "FX_GRPC_ADDR",      1},
        {{NULL},                                                        "--help",     "FX_DELIVERIES_MAX", 0},
        {{NULL},                                                        "--nonsense", "--nonsense",        1},
    };
    for (size_t i = 0; i < FX_TEST_COUNT(cases); i++) {
        static struct stage_process process;
        process = (struct stage_process){0};
        stage_exec(&process, cases[i].env, cases[i].argument);
        int status = stage_wait(&process);
        if (!strstr(process.log, cases[i].says)) print_error("%zu: %s\n", i, process.log);
        assert_non_null(strstr(process.log, cases[i].says));
        assert_int_equal(WEXITSTATUS(status), cases[i].status);
    }
}

static const struct stage_row rows[] = {
    {"probes",                 probes,                 {NULL},                         false},
    {"Redis away and back",    redis_away_and_back,    {NULL},                         false},
    {"says when to try again", says_when_to_try_again, {"FX_QUEUE_MODEL_MAX=1", NULL}, false},
    {"drains",                 drains,                 {NULL},                         false},
    {"drains without Redis",   drains_without_redis,   {NULL},                         false},
    {"refused starts",         refused_starts,         {NULL},                         false},
};
STAGE_MAIN(rows)
