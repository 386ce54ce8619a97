/* Every service in turn, replica by replica, is told to end and started again while clients
 * generate: every answer comes, and is the undisturbed one. Once with all the time there is to
 * finish what runs, once with next to none: then workers give it back, and clients of gateways come
 * back. */
#include "tests/chaos/rolling.h"

enum { REQUESTS = 24 };

static struct request requests[REQUESTS];
static struct client recorded[REQUESTS];

static struct rolling_figures restart_all(const char *run) {
    struct service *service;
    rolling_begin(run, requests, recorded, REQUESTS);
    for (uint32_t i = 0; (service = suite_service(&cluster, i)); i++)
        rolling_replace(service, NULL);
    return rolling_end();
}

static double resumed(void) {
    double sum = 0;
    for (uint32_t i = 0; i < SUITE_MANY; i++)
        sum += service_metric(&cluster.workers[i], "fx_worker_generations_resumed_total");
    return sum;
}

static void nothing_is_lost_while_services_restart(void **state) {
    (void)state;
    for (uint32_t i = 0; i < REQUESTS; i++)
        request_make(i, &requests[i]);
    crowd_record(recorded, requests, REQUESTS, ROLLING_CLIENTS);
    process_env_put(&cluster.env, "FX_DRAIN_MS=50"); /* of those that are started from now on */
    assert_true(restart_all("all-the-time").answered >= ROLLING_CLIENTS);
    assert_true(restart_all("50-ms").came_back > 0);
    assert_true(resumed() > 0);
    for (uint32_t i = 0; i < REQUESTS; i++)
        client_free(&recorded[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_lost_while_services_restart)};
    return cluster_main("rolling", tests, FX_TEST_COUNT(tests), &cluster_opts);
}
