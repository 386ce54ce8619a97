/* Every service in turn, replica by replica, is told to end and started again while clients
 * generate: every answer comes, and is the undisturbed one. Once with all the time there is to
 * finish what runs, once with next to none: then workers give it back, and clients of gateways come
 * back. */
#include "tests/chaos/rolling.h"

enum { REQUESTS = 24 };

static struct request requests[REQUESTS];
static struct client recorded[REQUESTS];

static double resumed_by(const struct service *worker) {
    return service_metric(worker, "fx_worker_generations_resumed_total");
}

static double resumed_by_all(void) {
    double sum = 0;
    for (uint32_t i = 0; i < SUITE_MANY; i++)
        sum += resumed_by(&cluster.workers[i]);
    return sum;
}

/* `resumed`: meanwhile; what a worker counted goes with it. */
static struct rolling_figures restart_all(const char *run, double *resumed) {
    struct service *service;
    rolling_begin(run, requests, recorded, REQUESTS);
    *resumed = -resumed_by_all();
    for (uint32_t i = 0; (service = suite_service(&cluster, i)); i++) {
        if (strcmp(service->program, "worker") == 0) *resumed += resumed_by(service);
        rolling_replace(service, NULL);
    }
    struct rolling_figures figures = rolling_end();
    *resumed += resumed_by_all();
    return figures;
}

static void nothing_is_lost_while_services_restart(void **state) {
    double resumed;
    (void)state;
    for (uint32_t i = 0; i < REQUESTS; i++)
        request_make(i, &requests[i]);
    crowd_record(recorded, requests, REQUESTS, ROLLING_CLIENTS);
    process_env_put(&cluster.env, "FX_DRAIN_MS=20"); /* of those that are started from now on */
    assert_true(restart_all("all-the-time", &resumed).answered >= ROLLING_CLIENTS);
    assert_true(restart_all("20-ms", &resumed).came_back > 0);
    print_message("20-ms: %.0f generations resumed\n", resumed);
    assert_true(resumed > 0);
    for (uint32_t i = 0; i < REQUESTS; i++)
        client_free(&recorded[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_lost_while_services_restart)};
    return cluster_main("rolling", tests, FX_TEST_COUNT(tests), &cluster_opts);
}
