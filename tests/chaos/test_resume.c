/* What a resume costs: tokens are computed again, none is drawn again. */
#include <signal.h>
#include "tests/chaos/crowd.h"

enum { PROMPT = 60, TOKENS = 800, KILLED_AT = 500, FLOW_MS = 20000, DIES_MS = 5000 };

/* The worker that has the only generation there is. */
static struct service *holder(void) {
    struct proxy_ids held;
    for (uint32_t i = 0; i < SUITE_MANY; i++) {
        proxy_held(cluster_proxy(&cluster.workers[i]), &held);
        if (held.count) return &cluster.workers[i];
    }
    return NULL;
}

struct counters {
    double prefilled, decoded, logged_prefilled, logged_sampled;
};

static struct counters counters_of(const struct service *worker) {
    auto_text metrics = service_metrics(worker);
    return (struct counters){metric_of(metrics, "fx_worker_tokens_prefilled_total"),
                             metric_of(metrics, "fx_worker_tokens_decoded_total"),
                             metric_of(metrics, "fx_worker_logged_prefilled_total"),
                             metric_of(metrics, "fx_worker_logged_sampled_total")};
}

/* By the counters of the worker that went on from `logged` tokens to the end. */
static void check(struct counters before, struct counters after, long long logged) {
    print_message("%lld tokens were logged; %.0f prefilled (%.0f of them logged), %.0f drawn, "
                  "%.0f of them again\n",
                  logged, after.prefilled - before.prefilled,
                  after.logged_prefilled - before.logged_prefilled, after.decoded - before.decoded,
                  after.logged_sampled - before.logged_sampled);
    assert_true(logged >= KILLED_AT);
    assert_true(after.prefilled - before.prefilled >= KILLED_AT);
    assert_true(after.logged_prefilled - before.logged_prefilled >= (double)logged - 1);
    assert_int_equal(after.decoded - before.decoded, TOKENS - logged);
    assert_int_equal(after.logged_sampled, 0);
}

static void logged_tokens_are_computed_not_drawn(void **state) {
    static struct request request;
    static struct client recorded, client;
    struct proxy_ids held;
    (void)state;
    request_make_long(PROMPT, TOKENS, &request);
    crowd_record(&recorded, &request, 1, 1);
    crowd_ask(&client, &request, "killed");
    WAIT_FOR(client.chunk_count >= KILLED_AT, FLOW_MS, "no tokens flow");
    struct service *killed = holder();
    assert_non_null(killed);
    struct service *other = &cluster.workers[1 - killed->number];
    proxy_held(cluster_proxy(killed), &held);
    process_signal(&killed->process, SIGKILL);
    killed->killed = true;
    assert_true(process_wait(&killed->process, DIES_MS));
    long long logged = cluster_log_entries(&held);
    struct counters before = counters_of(other);
    crowd_join_same(&client, &recorded);
    check(before, counters_of(other), logged);
    suite_worker_start(&cluster, killed->number);
    cluster_await_clean();
    client_free(&recorded);
    client_free(&client);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(logged_tokens_are_computed_not_drawn)};
    return cluster_main("resume", tests, FX_TEST_COUNT(tests), &cluster_opts);
}
