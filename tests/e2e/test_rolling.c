/* Every service in turn, replica by replica, is told to end and started again while clients
 * generate: every answer comes, and is the undisturbed one. Once with all the time there is to
 * finish what runs, once with next to none: then workers give it back, and clients of gateways come
 * back. */
#include <signal.h>
#include "tests/chaos/crowd.h"

enum {
    REQUESTS = 24,
    CLIENTS = 20,
    TURN_US = 5000,
    END_MS = 30000,
    BETWEEN_MS = 500, /* of undisturbed service */
};

static struct request requests[REQUESTS];
static struct client recorded[REQUESTS];

/* One client's place: when its answer has come it asks for the next. */
static struct place {
    struct client client;
    char run[32];
    uint32_t number; /* of the request */
} places[CLIENTS];
static uint32_t asked, answered, came_back, asked_again;

static void place_ask(struct place *place) {
    place->number = asked % REQUESTS;
    (void)snprintf(place->run, sizeof place->run, "rolling-%u", asked++);
    crowd_ask(&place->client, &requests[place->number], place->run);
}

static void place_end(struct place *place) {
    crowd_join_same(&place->client, &recorded[place->number]);
    answered++;
    came_back += place->client.came_back;
    asked_again += place->client.asked_again;
    client_free(&place->client);
}

static void turn(void) {
    for (uint32_t i = 0; i < CLIENTS; i++) {
        if (places[i].client.phase != CLIENT_ENDED) continue;
        place_end(&places[i]);
        place_ask(&places[i]);
    }
    (void)usleep(TURN_US);
}

static bool is_ready(const struct service *service) {
    return service_get(service, "/readyz") == 200;
}

#define TURN_UNTIL(condition, what)                                                                \
    do {                                                                                           \
        uint64_t turn_end_ms = fx_clock_ms() + END_MS;                                             \
        while (!(condition)) {                                                                     \
            if (fx_clock_ms() > turn_end_ms) fail_msg("%s " what, name);                           \
            turn();                                                                                \
        }                                                                                          \
    } while (0)

static void restart(struct service *service) {
    char name[sizeof service->process.name];
    (void)snprintf(name, sizeof name, "%s", service->process.name);
    uint64_t begin_ms = fx_clock_ms();
    uint32_t before = answered;
    process_signal(&service->process, SIGTERM);
    TURN_UNTIL(!process_runs(&service->process), "does not end");
    uint64_t ended_ms = fx_clock_ms();
    if (service->process.code != 0) fail_msg("%s ended with %d", name, service->process.code);
    suite_service_start(&cluster, service);
    TURN_UNTIL(is_ready(service), "is not ready");
    uint64_t ready_ms = fx_clock_ms();
    TURN_UNTIL(fx_clock_ms() > ready_ms + BETWEEN_MS, "");
    print_message("%s: ended after %llu ms, ready %llu ms later, %u answers meanwhile\n", name,
                  (unsigned long long)(ended_ms - begin_ms),
                  (unsigned long long)(ready_ms - ended_ms), answered - before);
}

static void restart_all(const char *what) {
    struct service *service;
    answered = came_back = asked_again = 0;
    for (uint32_t i = 0; i < CLIENTS; i++)
        place_ask(&places[i]);
    for (uint32_t i = 0; (service = suite_service(&cluster, i)); i++)
        restart(service);
    for (uint32_t i = 0; i < CLIENTS; i++)
        place_end(&places[i]);
    print_message("%s: %u answers, %u times a client came back, %u asked again\n", what, answered,
                  came_back, asked_again);
    cluster_await_clean();
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
    crowd_record(recorded, requests, REQUESTS, CLIENTS);
    process_env_put(&cluster.env, "FX_DRAIN_MS=50"); /* of those that are started from now on */
    restart_all("time to finish");
    restart_all("50 ms to finish");
    assert_true(came_back > 0);
    assert_true(resumed() > 0);
    for (uint32_t i = 0; i < REQUESTS; i++)
        client_free(&recorded[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_lost_while_services_restart)};
    return cluster_main("rolling", tests, FX_TEST_COUNT(tests), &cluster_opts);
}
