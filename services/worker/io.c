#include "services/worker/io_internal.h"
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/base/log.h"
#include <string.h>
#include <unistd.h>

enum {
    INBOX_MAX = 64,
    DRAIN_POLL_US = 10000,
    GIVE_BACK_MS = 1000,
    LEAVE_MS = 500,
    KEPT_DRAIN_MS = 5000
};

static void on_news(evutil_socket_t fd, short what, void *ctx) {
    (void)what;
    uint64_t count;
    ssize_t ignored = read((int)fd, &count, sizeof(count));
    (void)ignored;
    worker_io *io = ctx;
    io_news(io);
    if (io->pull_again) io_pull(io);
}

/* Work that makes no progress makes the worker unready; it then takes no more, and the schedulers
 * take it for dead. */
static void watch_progress(worker_io *io, uint64_t now_ms) {
    uint64_t progress = engine_thread_progress(io->opts.engine);
    bool computing = false;
    for (uint32_t i = 0; i < io->slots; i++)
        computing = computing || (io->gens[i].used && io->gens[i].in_engine);
    if (!computing || progress != io->progress) io->progress_ms = now_ms;
    io->progress = progress;
    status_set(io->opts.status, STATUS_SOUND_MS, io->progress_ms);
    status_set(io->opts.status, STATUS_TURNED_MS, now_ms);
}

static void on_tick(evutil_socket_t fd, short what, void *ctx) {
    (void)fd, (void)what;
    worker_io *io = ctx;
    uint64_t now_ms = fx_clock_ms();
    watch_progress(io, now_ms);
    io_renew(io, now_ms);
    io_flush(io);
    io_kept_tick(io, now_ms);
    if (io->pull_again || now_ms - io->pulled_ms >= IO_EVERY_MS) io_pull(io);
    if (now_ms - io->beat_ms >= IO_EVERY_MS && !worker_is_stuck(io->opts.status)) io_beat(io);
}

static void on_report(void *ctx, const struct fx_redis_report *report) {
    worker_io *io = ctx;
    status_set(io->opts.status, STATUS_REDIS_READY, report->ready);
    status_set(io->opts.status, STATUS_REDIS_RECONNECTS, report->reconnects);
    if (!report->ready) {
        fx_log(FX_LOG_WARN, FX_EVENT("redis_lost"), FX_KS("reason", report->err->text));
        return;
    }
    if (report->warning)
        fx_log(FX_LOG_WARN, FX_EVENT("redis_settings"), FX_KS("warning", report->warning));
    fx_log(FX_LOG_INFO, FX_EVENT("redis_ready"), FX_KI("reconnects", report->reconnects));
    status_set(io->opts.status, STATUS_REDIS_ALWAYS, report->fsync_always);
    if (!io->queue) return; /* still opening */
    io_kept_verify(io);
    io_flush(io);
    io_pull(io);
}

static struct gen *gen_find(worker_io *io, const fx_gen_id *id) {
    for (uint32_t i = 0; i < io->slots; i++)
        if (io->gens[i].used && memcmp(&io->gens[i].id, id, sizeof(*id)) == 0) return &io->gens[i];
    return NULL;
}

static void on_work(void *ctx, enum fx_work_event event, const fx_gen_id *id) {
    worker_io *io = ctx;
    if (event == FX_WORK_TASKS) {
        io_pull(io);
        return;
    }
    struct gen *gen = gen_find(io, id);
    if (!gen) return;
    io_gen_cancel(io, gen);
    io_flush(io);
}

/* ---- open and free ---- */

static void writes_init(worker_io *io) {
    for (uint32_t i = 0; i < IO_WRITES_MAX; i++)
        io->writes[i] = (struct io_write){io, 0, io->write_gens + (size_t)i * io->slots,
                                          io->write_first + (size_t)i * io->slots};
}

static FX_MUST bool memory_open(worker_io *io, fx_error *err) {
    size_t per_gen = (size_t)io->context_max + 1;
    io->gens = fx_alloc(io->slots, sizeof(*io->gens));
    io->ids = fx_alloc(io->slots, per_gen * sizeof(*io->ids));
    io->write_gens = fx_alloc((size_t)io->slots * IO_WRITES_MAX, sizeof(struct gen *));
    io->write_first = fx_alloc((size_t)io->slots * IO_WRITES_MAX, sizeof(*io->write_first));
    io->appends = fx_alloc(io->slots, sizeof(*io->appends));
    io->arena_bytes = fx_alloc(1, IO_TASK_ARENA_BYTES);
    if (!io->gens || !io->ids || !io->write_gens || !io->write_first || !io->appends ||
        !io->arena_bytes)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "tables of %u slots", io->slots);
    fx_arena_init(&io->arena, io->arena_bytes, IO_TASK_ARENA_BYTES);
    for (uint32_t i = 0; i < io->slots; i++)
        io->gens[i].ids = io->ids + i * per_gen;
    writes_init(io);
    return true;
}

static FX_MUST bool redis_open(worker_io *io, fx_error *err) {
    const struct worker_config *config = io->opts.config;
    const struct fx_redis_opts redis = {
        .base = fx_loop_base(io->loop),
        .url = config->redis_url,
        .tls = config->redis_tls,
        .library = fx_queue_library(),
        .on_report = on_report,
        .ctx = io,
    };
    if (!fx_redis_open(&redis, &io->redis, err)) return fx_wrap(err, "FX_REDIS_URL");
    const struct fx_queue_opts queue = {.redis = io->redis, .lease_ms = config->lease_ms};
    return fx_queue_open(&queue, &io->queue, err) &&
           fx_queue_wait_tasks(io->queue, io->model, on_work, io, &io->work, err);
}

static FX_MUST bool scheduler_open(worker_io *io, fx_error *err) {
    const struct fx_client_opts client = {
        .target = io->opts.config->scheduler_addr,
        .base = fx_loop_base(io->loop),
        .tls = fx_service_tls(&io->opts.config->service),
        .calls_max = 4,
        .attempts_max = 1, /* the next heartbeat is the retry */
    };
    if (!fx_client_open(&client, &io->scheduler, err)) return fx_wrap(err, "FX_SCHEDULER_ADDR");
    return true;
}

static FX_MUST bool events_open(worker_io *io, fx_error *err) {
    struct event_base *base = fx_loop_base(io->loop);
    const struct timeval tick = {0, IO_TICK_MS * 1000L};
    int fd = engine_thread_fd(io->opts.engine);
    io->news_event = event_new(base, fd, EV_READ | EV_PERSIST, on_news, io);
    io->tick_event = event_new(base, -1, EV_PERSIST, on_tick, io);
    if (!io->news_event || !io->tick_event || event_add(io->news_event, NULL) != 0 ||
        event_add(io->tick_event, &tick) != 0)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "the I/O thread's events");
    return true;
}

bool worker_io_open(const struct worker_io_opts *opts, worker_io **out, fx_error *err) {
    fx_auto(worker_io) io = fx_alloc(1, sizeof(*io));
    if (!io) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "the I/O thread");
    io->opts = *opts;
    io->model = fx_model_number(opts->model->name);
    io->slots = opts->config->slots_max;
    io->context_max = engine_thread_context_max(opts->engine);
    io->pull_again = true;
    TAILQ_INIT(&io->kept);
    fx_numerics_id(opts->model, opts->config->kv_dtype, io->numerics_id);
    status_set(opts->status, STATUS_SLOTS, io->slots);
    status_set(opts->status, STATUS_SLOTS_FREE, io->slots);
    if (!memory_open(io, err) || !fx_loop_open(INBOX_MAX, &io->loop, err) || !redis_open(io, err) ||
        !scheduler_open(io, err) || !events_open(io, err) || !fx_loop_start(io->loop, err))
        return false;
    *out = fx_take(io);
    return true;
}

static void memory_free(worker_io *io) {
    void *const buffers[] = {io->gens,        io->ids,     io->write_gens,
                             io->write_first, io->appends, io->arena_bytes};
    if (io->arena_bytes) fx_arena_done(&io->arena);
    while (!TAILQ_EMPTY(&io->kept))
        io_kept_free(io, TAILQ_FIRST(&io->kept));
    for (uint32_t i = 0; io->gens && i < io->slots; i++)
        gen_free(&io->gens[i]);
    for (size_t i = 0; i < FX_COUNT(buffers); i++)
        free(buffers[i]);
}

void worker_io_free(worker_io *io) {
    if (!io) return;
    if (io->loop) fx_loop_stop(io->loop);
    if (io->news_event) event_free(io->news_event);
    if (io->tick_event) event_free(io->tick_event);
    fx_client_free(io->scheduler);
    fx_work_free(io->work);
    fx_queue_free(io->queue);
    fx_redis_free(io->redis);
    fx_loop_free(io->loop);
    memory_free(io);
    free(io);
}

/* ---- drain ---- */

static void drain_start(void *user) {
    worker_io *io = user;
    io->draining = true;
    status_set(io->opts.status, STATUS_DRAINING, 1);
    io->beating = false; /* this one is sent even beside an earlier one */
    io_beat(io);
}

static void give_back(void *user) {
    io_give_back(user);
}

/* Nothing is held, and nothing more comes. A stuck engine gives nothing back by itself. */
static bool wait_idle(const worker_io *io, uint32_t ms) {
    const struct worker_status *status = io->opts.status;
    uint64_t deadline_ms = fx_clock_ms() + ms;
    while (status_get(status, STATUS_PULLING) ||
           status_get(status, STATUS_SLOTS_FREE) != io->slots) {
        if (fx_clock_ms() >= deadline_ms || worker_is_stuck(status)) return false;
        (void)usleep(DRAIN_POLL_US);
    }
    return true;
}

/* Until a number of the status is `value`. */
static bool wait_for(const worker_io *io, enum status_number which, uint64_t value, uint32_t ms) {
    uint64_t deadline_ms = fx_clock_ms() + ms;
    while (status_get(io->opts.status, which) != value) {
        if (fx_clock_ms() >= deadline_ms) return false;
        (void)usleep(DRAIN_POLL_US);
    }
    return true;
}

void worker_io_drain(worker_io *io, uint32_t grace_ms) {
    if (worker_is_mute(io->opts.status)) return; /* it would not hear of it */
    if (!fx_loop_call(io->loop, drain_start, io)) return;
    if (!wait_idle(io, grace_ms)) {
        uint64_t left = io->slots - status_get(io->opts.status, STATUS_SLOTS_FREE);
        fx_log(FX_LOG_WARN, FX_EVENT("drain_gives_back"), FX_KI("generations", left));
        if (fx_loop_call(io->loop, give_back, io))
            (void)wait_for(io, STATUS_SLOTS_FREE, io->slots, GIVE_BACK_MS);
    }
    (void)wait_for(io, STATUS_LEFT, 1, LEAVE_MS);
    if (status_get(io->opts.status, STATUS_REDIS_READY) &&
        !status_get(io->opts.status, STATUS_REDIS_ALWAYS))
        (void)wait_for(io, STATUS_KEPT, 0, KEPT_DRAIN_MS); /* Redis may lose its last second */
}
