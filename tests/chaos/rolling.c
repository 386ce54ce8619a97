#include "tests/chaos/rolling.h"
#include <signal.h>

enum {
    TURN_US = 5000,
    STEP_MS = 30000,
    BETWEEN_MS = 300, /* of undisturbed service */
};

/* One client's place: when its answer has come it asks for the next. */
struct place {
    struct client client;
    char run[48];
    uint32_t number; /* of the request */
};

static struct {
    struct place places[ROLLING_CLIENTS];
    const char *run;
    const struct request *requests;
    const struct client *recorded;
    uint32_t count, asked;
    struct rolling_figures figures;
} rolling;

static void place_ask(struct place *place) {
    place->number = rolling.asked % rolling.count;
    (void)snprintf(place->run, sizeof place->run, "%s-%u", rolling.run, rolling.asked++);
    crowd_ask(&place->client, &rolling.requests[place->number], place->run);
}

static void place_end(struct place *place) {
    crowd_join_same(&place->client, &rolling.recorded[place->number]);
    rolling.figures.answered++;
    rolling.figures.came_back += place->client.came_back;
    rolling.figures.asked_again += place->client.asked_again;
    client_free(&place->client);
}

static void turn(void) {
    for (uint32_t i = 0; i < ROLLING_CLIENTS; i++) {
        if (rolling.places[i].client.phase != CLIENT_ENDED) continue;
        place_end(&rolling.places[i]);
        place_ask(&rolling.places[i]);
    }
    (void)usleep(TURN_US);
}

#define TURN_UNTIL(condition, what)                                                                \
    do {                                                                                           \
        uint64_t turn_end_ms = fx_clock_ms() + STEP_MS;                                            \
        while (!(condition)) {                                                                     \
            if (fx_clock_ms() > turn_end_ms) fail_msg("%s " what, name);                           \
            turn();                                                                                \
        }                                                                                          \
    } while (0)

void rolling_begin(const char *run, const struct request *requests, const struct client *recorded,
                   uint32_t count) {
    memset(&rolling, 0, sizeof rolling);
    rolling.run = run;
    rolling.requests = requests;
    rolling.recorded = recorded;
    rolling.count = count;
    for (uint32_t i = 0; i < ROLLING_CLIENTS; i++)
        place_ask(&rolling.places[i]);
}

void rolling_replace(struct service *service, const char *bin) {
    char name[sizeof service->process.name];
    (void)snprintf(name, sizeof name, "%s", service->process.name);
    uint64_t begin_ms = fx_clock_ms();
    uint32_t before = rolling.figures.answered;
    process_signal(&service->process, SIGTERM);
    TURN_UNTIL(!process_runs(&service->process), "does not end");
    uint64_t ended_ms = fx_clock_ms();
    if (service->process.code != 0) fail_msg("%s ended with %d", name, service->process.code);
    service->bin = bin;
    suite_service_start(&cluster, service);
    TURN_UNTIL(service_get(service, "/readyz") == 200, "is not ready");
    uint64_t ready_ms = fx_clock_ms();
    TURN_UNTIL(fx_clock_ms() > ready_ms + BETWEEN_MS, "");
    print_message("%s: ended after %llu ms, ready %llu ms later, %u answers meanwhile\n", name,
                  (unsigned long long)(ended_ms - begin_ms),
                  (unsigned long long)(ready_ms - ended_ms), rolling.figures.answered - before);
}

struct rolling_figures rolling_end(void) {
    for (uint32_t i = 0; i < ROLLING_CLIENTS; i++)
        place_end(&rolling.places[i]);
    print_message("%s: %u answers, %u times a client came back, %u asked again\n", rolling.run,
                  rolling.figures.answered, rolling.figures.came_back, rolling.figures.asked_again);
    cluster_await_clean();
    return rolling.figures;
}
