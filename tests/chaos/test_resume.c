/* What a resume costs: tokens are computed again, none is drawn again. */
#include <signal.h>
#include "tests/chaos/crowd.h"

enum { PROMPT = 60, TOKENS = 800, KILLED_AT = 500, FLOW_MS = 20000, DIES_MS = 5000 };

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
    assert_in_range(logged, KILLED_AT, TOKENS - 1);
    assert_true(after.prefilled - before.prefilled >= KILLED_AT);
    assert_true(after.logged_prefilled - before.logged_prefilled >= (double)logged - 1);
    assert_int_equal(after.decoded - before.decoded, TOKENS - logged);
    assert_int_equal(after.logged_sampled, 0);
}

static void arm(struct service *worker, uint32_t tokens) {
    static _Atomic bool once;
    proxy_arm(cluster_proxy(worker), &(struct proxy_trap){.call = "append",
                                                          .when = PROXY_BEFORE,
                                                          .nth = 1,
                                                          .token_min = tokens + 1,
                                                          .pid = worker->process.pid,
                                                          .signal = SIGKILL,
                                                          .once = &once});
}

/* Whichever worker has the only generation there is dies when so many of its tokens are logged. */
static struct service *killed_at(uint32_t tokens, struct proxy_ids *held) {
    struct service *workers = cluster.workers;
    arm(&workers[0], tokens);
    arm(&workers[1], tokens);
    WAIT_FOR(proxy_sprung(cluster_proxy(&workers[0]), held) ||
                 proxy_sprung(cluster_proxy(&workers[1]), held),
             FLOW_MS, "no tokens flow");
    bool first = proxy_sprung(cluster_proxy(&workers[0]), held);
    struct service *killed = &workers[first ? 0 : 1];
    proxy_disarm(cluster_proxy(&workers[first ? 1 : 0]));
    killed->killed = true;
    assert_true(process_wait(&killed->process, DIES_MS));
    return killed;
}

static void logged_tokens_are_computed_not_drawn(void **state) {
    static struct request request;
    static struct client recorded, client;
    struct proxy_ids held;
    (void)state;
    request_make_long(PROMPT, TOKENS, &request);
    crowd_record(&recorded, &request, 1, 1);
    crowd_ask(&client, &request, "killed");
    struct service *killed = killed_at(KILLED_AT, &held);
    struct service *other = &cluster.workers[1 - killed->number];
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
