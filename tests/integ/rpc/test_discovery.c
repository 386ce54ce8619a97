/* A name whose addresses change, as a headless service's do: a DNS server of the test's own. */
#include "tests/integ/rpc/echo_service.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>

enum {
    SERVERS = 2,
    CALLS = 20,
    AGE_MS = 300,
    STEP_MS = 20000,
    HEADER = 12,
    PACKET = 512,
    ANSWER = 16,
    ANSWERS = SERVERS * ANSWER,
    TTL_S = 0
};

/* Answers every question for addresses with those that are set; every other with none. */
struct dns {
    int fd;
    uint16_t port;
    pthread_t thread;
    _Atomic bool listed[SERVERS]; /* 127.0.0.1, 127.0.0.2 */
    _Atomic bool ended;
    _Atomic uint32_t asked;
};

/* Where the one question ends; 0: it is none. */
static size_t question_end(const uint8_t *packet, size_t len) {
    size_t at = HEADER;
    while (at < len && packet[at])
        at += 1u + packet[at];
    return at + 5 <= len ? at + 5 : 0;
}

static size_t add_address(uint8_t *at, uint8_t last) {
    const uint8_t answer[ANSWER] = {0xc0, HEADER, 0, 1, 0,   1, 0, 0,
                                    0,    TTL_S,  0, 4, 127, 0, 0, last};
    memcpy(at, answer, sizeof answer);
    return sizeof answer;
}

static size_t answer(struct dns *dns, uint8_t *packet, size_t len) {
    size_t end = question_end(packet, len);
    if (!end) return 0;
    bool is_address = packet[end - 3] == 1; /* its type: A */
    memcpy(packet + 2, (uint8_t[]){0x85, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, HEADER - 2);
    for (uint8_t i = 0; is_address && i < SERVERS; i++) {
        if (!dns->listed[i]) continue;
        end += add_address(packet + end, (uint8_t)(i + 1));
        packet[7]++;
    }
    if (is_address) dns->asked++;
    return end;
}

static void *dns_run(void *ctx) {
    struct dns *dns = ctx;
    uint8_t packet[PACKET];
    while (!dns->ended) {
        struct sockaddr_in from;
        socklen_t from_len = sizeof from;
        ssize_t len =
            recvfrom(dns->fd, packet, PACKET - ANSWERS, 0, (struct sockaddr *)&from, &from_len);
        size_t out = len > HEADER ? answer(dns, packet, (size_t)len) : 0;
        if (out) (void)sendto(dns->fd, packet, out, 0, (struct sockaddr *)&from, from_len);
    }
    return NULL;
}

static void dns_open(struct dns *dns) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    struct timeval wait = {0, 50000};
    dns->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(dns->fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(dns->fd, (struct sockaddr *)&address, &len), 0);
    assert_int_equal(setsockopt(dns->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait), 0);
    dns->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&dns->thread, NULL, dns_run, dns), 0);
}

static void dns_close(struct dns *dns) {
    dns->ended = true;
    (void)pthread_join(dns->thread, NULL);
    (void)close(dns->fd);
}

struct fixture {
    struct dns dns;
    struct echo echo[SERVERS];
    fx_server *server[SERVERS];
    fx_client *client;
    char port[8];
};

/* On the port of the first. */
static void server_start(struct fixture *fixture, uint32_t i) {
    char address[64], target[64];
    (void)snprintf(address, sizeof address, "127.0.0.%u:%s", i + 1, i ? fixture->port : "0");
    struct fx_server_opts opts = {.address = address, .connection_age_ms = AGE_MS};
    fixture->server[i] = echo_open(&fixture->echo[i], opts, target);
    if (!i) (void)snprintf(fixture->port, sizeof fixture->port, "%s", strrchr(target, ':') + 1);
    fixture->dns.listed[i] = true;
}

static void server_stop(struct fixture *fixture, uint32_t i) {
    fx_server_free(fixture->server[i]);
    fixture->server[i] = NULL;
}

static int setup(void **state) {
    static struct fixture fixture;
    char target[128];
    fixture = (struct fixture){0};
    dns_open(&fixture.dns);
    server_start(&fixture, 0);
    (void)snprintf(target, sizeof target, "dns://127.0.0.1:%u/echo.test:%s", fixture.dns.port,
                   fixture.port);
    fixture.client = echo_client(target, NULL, 0);
    *state = &fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    fx_client_free(fixture->client);
    for (uint32_t i = 0; i < SERVERS; i++)
        if (fixture->echo[i].later) echo_close(&fixture->echo[i], fixture->server[i]);
    dns_close(&fixture->dns);
    return 0;
}

/* Of CALLS calls, which all succeed, those that server `i` got. */
static uint64_t share(const struct fixture *fixture, uint32_t i) {
    uint64_t before = fx_server_stats(fixture->server[i]).calls;
    for (int n = 0; n < CALLS; n++)
        assert_int_equal(echo_call(fixture->client, "/test.Echo/Now", 0, "", 5000, NULL, 0), FX_OK);
    return fx_server_stats(fixture->server[i]).calls - before;
}

static void until_share(const struct fixture *fixture, uint32_t i, uint64_t min, uint64_t max) {
    uint64_t end_ms = fx_clock_ms() + STEP_MS, got;
    while ((got = share(fixture, i)) < min || got > max) {
        if (fx_clock_ms() > end_ms) fail_msg("server %u gets %d", i, (int)got);
        usleep(20000);
    }
}

/* Nobody goes away, and still the one that is new gets its part. */
static void a_new_replica_gets_calls(void **state) {
    struct fixture *fixture = *state;
    assert_int_equal(share(fixture, 0), CALLS);
    server_start(fixture, 1);
    until_share(fixture, 1, CALLS / 2, CALLS / 2);
}

/* Out of the name first, then it drains, as a rolling update does: no call fails. */
static void a_replica_moves(void **state) {
    struct fixture *fixture = *state;
    assert_int_equal(share(fixture, 0), CALLS);
    server_start(fixture, 1);
    fixture->dns.listed[0] = false;
    until_share(fixture, 1, CALLS, CALLS);
    server_stop(fixture, 0);
    assert_int_equal(share(fixture, 1), CALLS);
}

/* It is still in the name when it goes; calls go to the other. */
static void a_replica_goes(void **state) {
    struct fixture *fixture = *state;
    server_start(fixture, 1);
    until_share(fixture, 1, CALLS / 2, CALLS / 2);
    server_stop(fixture, 0);
    assert_int_equal(share(fixture, 1), CALLS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_new_replica_gets_calls),
        TEST(a_replica_moves),
        TEST(a_replica_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
