#include "services/gateway/submit.h"
#include <event2/event.h>
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "fractal/v1/scheduler.pb-c.h"

enum {
    BUILD_BYTES = 1024 * 1024, /* of one message's parts, without prompts */
    REPLY_BYTES = 64 * 1024,
    GROUP_BYTES = 1024, /* of a request and of each choice, over what it points to */
    CHOICE_BYTES = 128,
    BIAS_BYTES = 64,
};

TAILQ_HEAD(submissions, gw_submission);

/** One call under way. */
struct batch {
    struct gw_submits *submits;
    struct batch *next; /* while it is free */
    uint32_t count;
    struct gw_submission *groups[GW_SUBMIT_GROUPS_MAX];
    fx_arena reply;
};

struct gw_submits {
    struct gateway *gateway;
    struct event *flush;
    struct submissions waiting;
    struct batch batches[GW_SUBMIT_CALLS_MAX], *free;
    uint64_t old_until_ms; /* a scheduler did not know SubmitGenerations */
    fx_arena build;        /* of the message being packed */
    uint8_t *memory;       /* of all arenas */
};

bool gw_submit_perhaps_done(enum fx_code code) {
    return code == FX_UNAVAILABLE || code == FX_DEADLINE_EXCEEDED || code == FX_CANCELLED ||
           code == FX_UNKNOWN || code == FX_INTERNAL;
}

/* -- one submission -- */

void gw_submission_end(struct gw_submission *submission, const struct fx_client_result *result,
                       const uint64_t *seeds) {
    struct gw_choice *first = submission->first;
    struct gw_visit *visit = first->visit;
    for (uint32_t i = 0; i < submission->count; i++)
        first[i].submitting = false;
    gw_generation_submitted(first, submission->count, result, seeds);
    gw_visit_unref(visit); /* the question's */
}

/* Nobody waits for it any more, and no scheduler knows of it. */
static void drop(struct gw_submission *submission) {
    for (uint32_t i = 0; i < submission->count; i++)
        submission->first[i].submitting = false;
    gw_visit_unref(submission->first->visit);
}

static bool is_wanted(const struct gw_submission *submission) {
    const struct gw_visit *visit = submission->first->visit;
    return gw_visit_here(visit) && !visit->given_up;
}

/* At least as much as it takes of the message, and of memory to unpack it. */
static size_t bytes_of(const struct gw_submission *submission) {
    const struct gw_visit *visit = submission->first->visit;
    const struct gw_request *request = &visit->request;
    return GROUP_BYTES + submission->count * CHOICE_BYTES + visit->prompt.len * sizeof(uint32_t) +
           (size_t)request->bias_count * BIAS_BYTES +
           (size_t)request->stop_count * FX_STOP_BYTES_MAX;
}

/* -- one call -- */

static Fractal__V1__GenerationGroup *group_build(const struct gw_submission *submission,
                                                 fx_arena *memory) {
    uint32_t count = submission->count;
    Fractal__V1__GenerationGroup *group = fx_arena_alloc(memory, sizeof *group);
    Fractal__V1__GenerationChoice *choices = fx_arena_array(memory, count, sizeof *choices);
    Fractal__V1__GenerationChoice **to = fx_arena_array(memory, count, sizeof(void *));
    if (!group || !choices || !to) return NULL;
    fractal__v1__generation_group__init(group);
    group->task = gw_task(submission->first, count, memory);
    group->tenant_weight = submission->first->visit->who.weight;
    group->choices = to;
    group->n_choices = count;
    for (uint32_t i = 0; i < count; i++) {
        to[i] = &choices[i];
        fractal__v1__generation_choice__init(to[i]);
        to[i]->id = (ProtobufCBinaryData){FX_GEN_ID_BYTES, submission->first[i].id.bytes};
        to[i]->choice = submission->first[i].index;
    }
    return group->task ? group : NULL;
}

static void batch_free(struct batch *batch) {
    struct gw_submits *submits = batch->submits;
    fx_arena_reset(&batch->reply);
    batch->next = submits->free;
    submits->free = batch;
}

/* All alike: nobody answered for one. */
static void batch_fail(struct batch *batch, const struct fx_client_result *result) {
    for (uint32_t i = 0; i < batch->count; i++)
        gw_submission_end(batch->groups[i], result, NULL);
}

static void batch_old(struct batch *batch) {
    batch->submits->old_until_ms = fx_clock_ms() + GW_SUBMIT_OLD_MS;
    for (uint32_t i = 0; i < batch->count; i++)
        gw_submit_each(batch->groups[i]);
}

static void group_end(struct gw_submission *submission, const Fractal__V1__GroupResult *from) {
    struct fx_client_result result = {.code = (enum fx_code)from->code,
                                      .text = from->text,
                                      .retry_after_ms = from->retry_after_ms};
    if (result.code == FX_OK && from->n_seeds != submission->count)
        result = (struct fx_client_result){.code = FX_INTERNAL, .text = "an answer without seeds"};
    gw_submission_end(submission, &result, from->seeds);
}

static void batch_end(struct batch *batch, const struct fx_client_result *result) {
    static const struct fx_client_result odd = {.code = FX_INTERNAL,
                                                .text = "an answer to other questions"};
    const Fractal__V1__SubmitGenerationsReply *reply = result->reply;
    if (result->code == FX_UNIMPLEMENTED)
        batch_old(batch);
    else if (result->code != FX_OK)
        batch_fail(batch, result);
    else if (reply->n_results != batch->count)
        batch_fail(batch, &odd);
    else
        for (uint32_t i = 0; i < batch->count; i++)
            group_end(batch->groups[i], reply->results[i]);
}

static void flush(struct gw_submits *submits);

static void on_submitted(void *user, const struct fx_client_result *result) {
    struct batch *batch = user;
    batch_end(batch, result);
    batch_free(batch);
    flush(batch->submits);
}

static FX_MUST bool batch_start(struct batch *batch, fx_error *err) {
    struct gw_submits *submits = batch->submits;
    struct gw_visit *visit = batch->groups[0]->first->visit;
    Fractal__V1__GenerationGroup *groups[GW_SUBMIT_GROUPS_MAX];
    Fractal__V1__SubmitGenerationsRequest message = FRACTAL__V1__SUBMIT_GENERATIONS_REQUEST__INIT;
    struct fx_client_request request = {
        .method = "/fractal.v1.SchedulerService/SubmitGenerations",
        .message = &message,
        .reply = &fractal__v1__submit_generations_reply__descriptor,
        .deadline_ms = GW_SUBMIT_DEADLINE_MS,
        .trace = batch->count == 1 ? &visit->trace : NULL,
        .arena = &batch->reply,
        .user = batch,
        .on_done = on_submitted,
    };
    for (uint32_t i = 0; i < batch->count; i++) {
        groups[i] = group_build(batch->groups[i], &submits->build);
        if (!groups[i]) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "the request is too large");
    }
    message.groups = groups;
    message.n_groups = batch->count;
    gw_count(&submits->gateway->metrics.submit_calls, 1);
    return fx_client_start(submits->gateway->scheduler, &request, NULL, err);
}

/* -- what waits -- */

static struct gw_submission *take(struct gw_submits *submits) {
    struct gw_submission *submission;
    while ((submission = TAILQ_FIRST(&submits->waiting))) {
        TAILQ_REMOVE(&submits->waiting, submission, entry);
        if (is_wanted(submission)) return submission;
        drop(submission);
    }
    return NULL;
}

static void batch_fill(struct batch *batch) {
    struct gw_submission *submission;
    size_t bytes = 0;
    batch->count = 0;
    while (batch->count < GW_SUBMIT_GROUPS_MAX && (submission = take(batch->submits))) {
        bytes += bytes_of(submission);
        if (batch->count && bytes > GW_SUBMIT_BYTES_MAX) {
            TAILQ_INSERT_HEAD(&batch->submits->waiting, submission, entry);
            return;
        }
        batch->groups[batch->count++] = submission;
    }
}

static void send_one_call(struct gw_submits *submits) {
    struct batch *batch = submits->free;
    fx_error err = {0};
    submits->free = batch->next;
    batch_fill(batch);
    bool ok = !batch->count || batch_start(batch, &err);
    fx_arena_reset(&submits->build);
    if (ok && batch->count) return;
    batch_fail(batch, &(struct fx_client_result){.code = err.code, .text = err.text});
    batch_free(batch);
}

static void flush(struct gw_submits *submits) {
    struct gw_submission *submission;
    bool old = fx_clock_ms() < submits->old_until_ms;
    while (old && (submission = take(submits)))
        gw_submit_each(submission);
    while (submits->free && !TAILQ_EMPTY(&submits->waiting))
        send_one_call(submits);
}

static void on_flush(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what;
    flush(arg);
}

void gw_submit(struct gw_choice *first, uint32_t count) {
    struct gw_visit *visit = first->visit;
    struct gw_submits *submits = visit->gateway->submits;
    first->submission.first = first;
    first->submission.count = count;
    for (uint32_t i = 0; i < count; i++)
        first[i].submitting = true;
    gw_visit_ref(visit);                                                    /* the question's */
    if (TAILQ_EMPTY(&submits->waiting)) event_active(submits->flush, 0, 0); /* this turn's last */
    TAILQ_INSERT_TAIL(&submits->waiting, &first->submission, entry);
}

/* -- life -- */

static void arenas_open(struct gw_submits *submits) {
    fx_arena_init(&submits->build, submits->memory, BUILD_BYTES);
    for (uint32_t i = 0; i < GW_SUBMIT_CALLS_MAX; i++) {
        struct batch *batch = &submits->batches[i];
        batch->submits = submits;
        fx_arena_init(&batch->reply, submits->memory + BUILD_BYTES + (size_t)i * REPLY_BYTES,
                      REPLY_BYTES);
        batch_free(batch);
    }
}

bool gw_submits_open(struct gateway *gateway, struct gw_submits **out, fx_error *err) {
    struct gw_submits *submits = fx_alloc(1, sizeof *submits);
    if (!submits) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for submissions");
    submits->gateway = gateway;
    TAILQ_INIT(&submits->waiting);
    submits->memory = fx_alloc(1, BUILD_BYTES + (size_t)GW_SUBMIT_CALLS_MAX * REPLY_BYTES);
    submits->flush = event_new(fx_loop_base(gateway->loop), -1, 0, on_flush, submits);
    if (!submits->memory || !submits->flush) {
        gw_submits_free(submits);
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for submissions");
    }
    arenas_open(submits);
    *out = submits;
    return true;
}

void gw_submits_drop(struct gw_submits *submits) {
    static const struct fx_client_result closing = {.code = FX_FAILED_PRECONDITION,
                                                    .text = "the gateway closes"};
    struct gw_submission *submission;
    while (submits && (submission = TAILQ_FIRST(&submits->waiting))) {
        TAILQ_REMOVE(&submits->waiting, submission, entry);
        gw_submission_end(submission, &closing, NULL);
    }
}

void gw_submits_free(struct gw_submits *submits) {
    if (!submits) return;
    if (submits->flush) event_free(submits->flush);
    if (submits->free) fx_arena_done(&submits->build);
    for (struct batch *batch = submits->free; batch; batch = batch->next)
        fx_arena_done(&batch->reply);
    free(submits->memory);
    free(submits);
}
