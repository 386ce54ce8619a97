/* No published message reaches a gateway: it finds by reading what it was not told. */
#include "tests/chaos/crowd.h"

enum { ANSWERS = 6, PROMPT = 40, TOKENS = 900, GAP_MS_MAX = 1500 };

static uint64_t longest_gap_us(const struct client *client) {
    uint64_t longest = 0, before = client->begun_us;
    for (uint32_t i = 0; i < client->chunk_count; i++) {
        if (client->came_us[i] - before > longest) longest = client->came_us[i] - before;
        before = client->came_us[i];
    }
    if (client->ended_us - before > longest) longest = client->ended_us - before;
    return longest;
}

static void swallow(bool on) {
    for (uint32_t i = 0; i < SUITE_MANY; i++)
        proxy_swallow(cluster_proxy(&cluster.gateways[i]), on);
}

static uint64_t swallowed(void) {
    return proxy_swallowed(cluster_proxy(&cluster.gateways[0])) +
           proxy_swallowed(cluster_proxy(&cluster.gateways[1]));
}

static void a_dropped_publish_costs_a_second(void **state) {
    static struct request requests[ANSWERS];
    static struct client recorded[ANSWERS], clients[ANSWERS];
    uint64_t longest_us = 0;
    (void)state;
    for (uint32_t i = 0; i < ANSWERS; i++) {
        request_make_long(PROMPT + i, TOKENS, &requests[i]);
        requests[i].number = i;
    }
    crowd_record(recorded, requests, ANSWERS, ANSWERS);
    swallow(true);
    for (uint32_t i = 0; i < ANSWERS; i++)
        crowd_ask(&clients[i], &requests[i], "swallowed");
    for (uint32_t i = 0; i < ANSWERS; i++) {
        crowd_join_same(&clients[i], &recorded[i]);
        uint64_t gap_us = longest_gap_us(&clients[i]);
        if (gap_us > longest_us) longest_us = gap_us;
    }
    swallow(false);
    print_message("%llu messages swallowed, longest gap %.0f ms\n", (unsigned long long)swallowed(),
                  (double)longest_us / 1000);
    assert_true(swallowed() > ANSWERS * TOKENS / 4); /* an append may bring several tokens */
    assert_in_range(longest_us / 1000, 0, GAP_MS_MAX);
    cluster_await_clean();
    for (uint32_t i = 0; i < ANSWERS; i++) {
        client_free(&recorded[i]);
        client_free(&clients[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_dropped_publish_costs_a_second)};
    return cluster_main("hints", tests, FX_TEST_COUNT(tests), &cluster_opts);
}
