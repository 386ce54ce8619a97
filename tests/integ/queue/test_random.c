/* Random sequences of everything that gateways, schedulers, workers and a Redis that loses its last
 * moments do, against what must always hold. Each row is a seed: what fails once fails again. */
#include <stdlib.h>
#include "common/base/hash.h"
#include "common/base/heap.h"
#include "tests/integ/queue/invariants.h"
#include "tests/integ/queue/reader.h"

enum { GENS = 6, TENANTS = 3, WORKERS = 4, SLOTS = 3, HELD_MAX = 16, LENGTH_MAX = 12 };
enum { EPISODES = 12, STEPS = 150, ROUNDS_MAX = 100, PIECE_MAX = 4, EXPIRE_ROUNDS = 10 };

/* ---- what the processes know ---- */

struct held {
    uint32_t n, epoch, logged, have, sent, server;
    bool used, cancelled, ended; /* ended: acknowledged, but Redis may still lose it */
};
struct worker {
    char name[16];
    const char *numerics;
    struct held held[HELD_MAX];
    uint32_t born;
};
struct world {
    struct rig *rig;
    uint64_t random;
    uint32_t server; /* how often Redis lost something */
    uint32_t length[GENS + 1];
    bool submitted[GENS + 1], cancelled[GENS + 1];
    struct reader readers[GENS + 1];
    struct grant {
        uint32_t epoch, server;
        char worker[16];
    } granted[GENS + 1]; /* the last, and by which Redis */
    struct worker workers[WORKERS];
};

static uint32_t any(struct world *world, uint32_t below) {
    world->random = world->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(world->random >> 33) % below;
}

/* ---- gateways and schedulers ---- */

static void submit(struct world *world, uint32_t n) {
    assert_int_equal(rig_submit(world->rig, n, n % TENANTS + 1).status, FX_QUEUE_OK);
    if (!world->submitted[n]) reader_open(world->rig, n, &world->readers[n]);
    world->submitted[n] = true;
}

/* Admitted means admitted: what Redis does not know any more is submitted again. */
static void look_after(struct world *world, uint32_t n) {
    if (world->submitted[n] && rig_get(world->rig, n).status == FX_QUEUE_NOT_FOUND)
        submit(world, n);
}

static void cancel(struct world *world, uint32_t n) {
    if (rig_cancel(world->rig, n).status == FX_QUEUE_OK) world->cancelled[n] = true;
}

/* ---- workers: as services/worker does it ---- */

static void born(struct worker *worker, uint32_t index) {
    worker->born++;
    (void)snprintf(worker->name, sizeof worker->name, "w%u.%u", index, worker->born);
    worker->numerics = index == WORKERS - 1 ? "other/1" : "exact/1";
    memset(worker->held, 0, sizeof worker->held);
}

static void beat(struct world *world, const struct worker *worker) {
    struct fx_worker_info info = {.slots = SLOTS, .slots_free = SLOTS, .context_max = 512};
    (void)snprintf(info.worker, sizeof info.worker, "%s", worker->name);
    (void)snprintf(info.numerics_id, sizeof info.numerics_id, "%s", worker->numerics);
    rig_beat_as(world->rig, &info);
}

static uint32_t spare(const struct worker *worker, struct held **free_one) {
    uint32_t running = 0;
    *free_one = NULL;
    for (uint32_t i = 0; i < HELD_MAX; i++) {
        const struct held *held = &worker->held[i];
        if (!held->used) *free_one = (struct held *)(uintptr_t)held;
        running += held->used && !held->ended;
    }
    return running < SLOTS && *free_one ? SLOTS - running : 0;
}

/* No two get the same epoch from one Redis, nor an earlier one; the owner may get it again. */
static void granted(struct world *world, const struct worker *worker, uint32_t n, uint32_t epoch,
                    bool again) {
    struct grant *last = &world->granted[n];
    bool own = again && strcmp(last->worker, worker->name) == 0;
    if (last->server == world->server) assert_in_range(epoch, last->epoch + !own, UINT32_MAX);
    *last = (struct grant){.epoch = epoch, .server = world->server};
    (void)snprintf(last->worker, sizeof last->worker, "%s", worker->name);
}

static void pull(struct world *world, struct worker *worker, bool answered) {
    struct held *held;
    if (!spare(worker, &held)) return;
    struct rig_tasks tasks = rig_pull_as(world->rig, worker->name, worker->numerics, 1);
    const struct rig_task *task = &tasks.at[0];
    if (tasks.count) granted(world, worker, rig_number(&task->id), task->epoch, false);
    if (!tasks.count || !answered) return;
    *held = (struct held){.n = rig_number(&task->id),
                          .epoch = task->epoch,
                          .logged = task->logged_count,
                          .have = task->logged_count,
                          .sent = task->logged_count,
                          .server = world->server,
                          .used = true,
                          .cancelled = task->cancelled};
}

static void on_write(void *ctx, const struct fx_write_result *result, const fx_error *err) {
    if (err) fail_msg("%s", err->text);
    *(struct fx_write_result *)ctx = *result;
}

static struct fx_write_result answer_of(struct world *world, const struct fx_write_result *result) {
    for (int i = 0; i < 3000 && (int)result->status == 99; i++)
        (void)event_base_loop(world->rig->base, EVLOOP_ONCE);
    assert_int_not_equal(result->status, 99);
    return *result;
}

static struct fx_write_result restore(struct world *world, const struct worker *worker,
                                      const struct held *held) {
    struct fx_write_result result = {.status = (enum fx_queue_status)99};
    const struct fx_submit submit = rig_submission(held->n, held->n % TENANTS + 1);
    const struct fx_restore call = {
        .model = RIG_MODEL,
        .id = submit.id,
        .epoch = held->epoch,
        .worker = worker->name,
        .numerics_id = worker->numerics,
        .terms = {submit.tenant, submit.seed, 1, submit.prompt_tokens, submit.expected_tokens, 100},
        .task = submit.task,
        .about = submit.about,
    };
    assert_true(fx_queue_restore(world->rig->queue, &call, on_write, &result, &(fx_error){0}));
    return answer_of(world, &result);
}

static struct fx_write_result append(struct world *world, const struct worker *worker,
                                     const struct held *held, uint32_t first) {
    uint32_t tokens[LENGTH_MAX];
    struct fx_write_result result = {.status = (enum fx_queue_status)99};
    for (uint32_t i = first; i <= held->have; i++)
        tokens[i - first] = held->n * 100 + i;
    const struct fx_append call = {.model = RIG_MODEL,
                                   .id = rig_id(held->n),
                                   .epoch = held->epoch,
                                   .first = first,
                                   .tokens = tokens,
                                   .count = held->have - first + 1,
                                   .worker = worker->name};
    assert_true(fx_queue_append(world->rig->queue, &call, on_write, &result, &(fx_error){0}));
    return answer_of(world, &result);
}

static struct fx_write_result finish(struct world *world, const struct worker *worker,
                                     const struct held *held) {
    struct fx_write_result result = {.status = (enum fx_queue_status)99};
    const struct fx_gen_end call = {.model = RIG_MODEL,
                                    .id = rig_id(held->n),
                                    .epoch = held->epoch,
                                    .last = held->have,
                                    .reason =
                                        held->cancelled ? FX_FINISH_CANCELLED : FX_FINISH_STOP,
                                    .worker = worker->name};
    assert_true(fx_queue_finish(world->rig->queue, &call, on_write, &result, &(fx_error){0}));
    return answer_of(world, &result);
}

/* Only the owner writes. */
static void check_owner(struct world *world, const struct worker *worker, const struct held *held) {
    fx_error err = {0};
    redisReply *reply = NULL;
    fx_gen_id id = rig_id(held->n);
    char key[64] = "fx:{m7}:gen:";
    fx_hex((fx_span){id.bytes, sizeof id.bytes}, key + strlen(key));
    assert_true(fx_redis_sync(world->rig->redis, 3000, &reply, &err, "HMGET %s owner epoch", key));
    assert_string_equal(reply->element[0]->str, worker->name);
    assert_int_equal(strtoul(reply->element[1]->str, NULL, 10), held->epoch);
    freeReplyObject(reply);
}

static void put_back(struct world *world, const struct worker *worker, struct held *held) {
    struct fx_write_result result = {.status = FX_QUEUE_LEASE_LOST};
    if (held->server != world->server) result = restore(world, worker, held);
    bool known = result.last <= held->have || held->cancelled;
    if (result.status == FX_QUEUE_OK) {
        granted(world, worker, held->n, held->epoch, true);
        check_owner(world, worker, held);
    }
    held->used = result.status == FX_QUEUE_OK && known;
    held->server = world->server;
    held->sent = result.last;
    held->cancelled = held->cancelled || result.cancelled;
}

static void answered(struct world *world, const struct worker *worker, struct held *held,
                     const struct fx_write_result *result) {
    assert_int_not_equal(result->status, FX_QUEUE_ABANDON);
    if (result->status == FX_QUEUE_LEASE_LOST || result->status == FX_QUEUE_NOT_FOUND) {
        put_back(world, worker, held);
        return;
    }
    held->server = world->server;
    held->sent = result->last < held->have ? result->last : held->have;
    held->cancelled = held->cancelled || result->cancelled;
}

/* A few more tokens, or the end. */
static void step(struct world *world, const struct worker *worker, struct held *held) {
    uint32_t length = world->length[held->n], more = any(world, PIECE_MAX + 1);
    if (held->ended && held->server == world->server) return;
    held->ended = false; /* Redis is another: it is said again */
    held->have = held->have + more < length ? held->have + more : length;
    if (!held->cancelled && held->sent < held->have) {
        uint32_t first = held->sent && any(world, 4) == 0 ? held->sent : held->sent + 1;
        struct fx_write_result result = append(world, worker, held, first);
        if (result.status == FX_QUEUE_OK) check_owner(world, worker, held);
        answered(world, worker, held, &result);
    } else if (held->cancelled || held->have == length) {
        struct fx_write_result result = finish(world, worker, held);
        held->ended = result.status == FX_QUEUE_OK;
        answered(world, worker, held, &result);
    }
}

static void work(struct world *world, struct worker *worker) {
    for (uint32_t i = 0; i < HELD_MAX; i++)
        if (worker->held[i].used && any(world, 3)) step(world, worker, &worker->held[i]);
}

static void give_back(struct world *world, struct worker *worker) {
    struct held *held = &worker->held[any(world, HELD_MAX)];
    if (!held->used || held->ended) return;
    (void)rig_renew(world->rig, held->n, held->epoch, worker->name, true);
    held->used = false;
}

/* ---- Redis ---- */

/* From now on nothing older is lost, so what ended need not be kept. */
static void safe(struct world *world) {
    (void)rig_int(world->rig, "SAVE");
    for (uint32_t w = 0; w < WORKERS; w++)
        for (uint32_t i = 0; i < HELD_MAX; i++) {
            struct held *held = &world->workers[w].held[i];
            if (held->ended && held->server == world->server) held->used = false;
        }
}

/* Back to the last safe point. */
static void lose(struct world *world) {
    (void)rig_int(world->rig, "DEBUG RELOAD NOSAVE");
    world->server++;
}

/* ---- the rows ---- */

static void expire_one(struct world *world) {
    rig_expire(world->rig, 1 + any(world, GENS));
    (void)rig_reclaim(world->rig);
}

static void expire_all(struct world *world) {
    for (uint32_t n = 1; n <= GENS; n++)
        rig_expire(world->rig, n);
    (void)rig_reclaim(world->rig);
}

static void one_step(struct world *world) {
    uint32_t index = any(world, WORKERS), n = 1 + any(world, GENS), what = any(world, 100);
    struct worker *worker = &world->workers[index];
    if (what < 8)
        submit(world, n);
    else if (what < 18)
        (void)rig_dispatch(world->rig);
    else if (what < 34)
        pull(world, worker, any(world, 8) > 0);
    else if (what < 64)
        work(world, worker);
    else if (what < 74)
        expire_one(world);
    else if (what < 79)
        look_after(world, n);
    else if (what < 81)
        cancel(world, n);
    else if (what < 84)
        give_back(world, worker);
    else if (what < 86)
        born(worker, index);
    else if (what < 89)
        beat(world, worker);
    else if (what < 94)
        safe(world);
    else
        lose(world);
}

/* No more faults: everything ends. */
static bool all_ended(struct world *world) {
    bool ended = true;
    for (uint32_t w = 0; w < WORKERS; w++) {
        beat(world, &world->workers[w]);
        (void)rig_dispatch(world->rig);
        pull(world, &world->workers[w], true);
        rig_check(world->rig, GENS, TENANTS);
        work(world, &world->workers[w]);
        rig_check(world->rig, GENS, TENANTS);
    }
    for (uint32_t n = 1; n <= GENS; n++) {
        look_after(world, n);
        ended = ended && (!world->submitted[n] || rig_get(world->rig, n).state >= FX_GEN_FINISHED);
    }
    return ended;
}

/* Whole, in Redis and for who waited for it, unless it was cancelled. */
static void check_end(struct world *world, uint32_t n) {
    struct reader *reader = &world->readers[n];
    struct fx_gen_tokens log = rig_log(world->rig, n);
    reader_wait(world->rig, reader);
    reader_close(reader);
    if (log.finish == FX_FINISH_STOP) assert_int_equal(log.count, world->length[n]);
    if (reader->finish == FX_FINISH_STOP) assert_int_equal(reader->told, world->length[n]);
    if (world->cancelled[n]) return;
    assert_int_equal(log.finish, FX_FINISH_STOP);
    assert_int_equal(reader->finish, FX_FINISH_STOP);
}

static void complete(struct world *world) {
    for (uint32_t round = 0; !all_ended(world); round++) {
        assert_in_range(round, 0, ROUNDS_MAX);
        if (round % EXPIRE_ROUNDS == 0) expire_all(world);
    }
    for (uint32_t n = 1; n <= GENS; n++)
        if (world->submitted[n]) check_end(world, n);
    assert_int_equal(rig_int(world->rig, "XLEN fx:{m7}:tasks"), 0);
}

static void episode(struct rig *rig, uint32_t seed) {
    struct world world = {.rig = rig, .random = seed};
    rig_flush(rig);
    for (uint32_t n = 1; n <= GENS; n++)
        world.length[n] = 1 + any(&world, LENGTH_MAX);
    for (uint32_t w = 0; w < WORKERS; w++) {
        born(&world.workers[w], w);
        beat(&world, &world.workers[w]);
    }
    safe(&world);
    for (uint32_t i = 0; i < STEPS; i++) {
        one_step(&world);
        rig_check(rig, GENS, TENANTS);
    }
    complete(&world);
}

/* Leases that last longer than the test, deliveries without end: only what is expired here is. */
static void reopen(struct rig *rig) {
    fx_error err = {0};
    struct fx_queue_opts opts = {.redis = rig->redis,
                                 .lease_ms = 600000,
                                 .retain_s = 100,
                                 .model_max = 64,
                                 .tenant_max = 32,
                                 .silence_ms = 50,
                                 .fruitless_max = 1000000};
    fx_queue_free(fx_take(rig->queue));
    assert_true(fx_queue_open(&opts, &rig->queue, &err));
}

static void episodes(struct rig *rig, uint32_t first) {
    reopen(rig);
    for (uint32_t seed = first; seed < first + EPISODES; seed++) {
        print_message("seed %u\n", seed);
        episode(rig, seed);
    }
}

static void seeds_1(struct rig *rig) {
    episodes(rig, 1);
}

static void seeds_101(struct rig *rig) {
    episodes(rig, 101);
}

static const struct rig_row rows[] = {
    {"seeds from 1",   seeds_1  },
    {"seeds from 101", seeds_101},
};
RIG_MAIN(rows)
