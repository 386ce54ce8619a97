#include "tests/chaos/crowd.h"

void crowd_ask(struct client *client, const struct request *request, const char *run) {
    const struct client_opts opts = {
        .request = request,
        .api_key = cluster.key,
        .run = run,
        .ports = {cluster.gateways[0].port, cluster.gateways[1].port},
        .port_count = cluster.opts.gateways,
        .first = request->number % cluster.opts.gateways,
    };
    client_start(client, &opts);
}

void crowd_record(struct client *clients, const struct request *requests, uint32_t count,
                  uint32_t at_once) {
    for (uint32_t first = 0; first < count; first += at_once) {
        uint32_t end = first + at_once < count ? first + at_once : count;
        for (uint32_t i = first; i < end; i++)
            crowd_ask(&clients[i], &requests[i], "record");
        for (uint32_t i = first; i < end; i++)
            client_join(&clients[i]);
    }
    for (uint32_t i = 0; i < count; i++)
        if (!clients[i].done || *clients[i].why)
            fail_msg("undisturbed answer %u: %s", requests[i].number, clients[i].why);
}

void crowd_join_same(struct client *client, const struct client *recorded) {
    char why[CLIENT_WHY_MAX];
    client_join(client);
    if (!client->done || *client->why)
        fail_msg("answer %u (%s): %s", client->opts.request->number, client->name, client->why);
    if (!client_same(client, recorded, why))
        fail_msg("answer %u (%s): %s", client->opts.request->number, client->name, why);
}
