/* test_chaos ANSWERS ROUND KILLS ROOM: so many answers, in rounds of so many at once. Each is
 * recorded while nothing happens; then processes die and freeze under them. What clients get must
 * be the same, and at least KILLS must have met a running generation. ROOM "roomy": what a dead
 * worker had goes on in time; "tight": there are always some that wait for KV pages. */
#include <signal.h>
#include "tests/chaos/crowd.h"
#include "tests/chaos/rounds.h"
#include "tests/chaos/tally.h"

enum {
    ROUND_MAX = 32,
    RECORD_AT_ONCE = 12,
    FLOW_CHUNKS = 20, /* at most so many of each stream, on average, come before the blow */
    FLOW_MS = 20000,
    STRIKE_MS = 30000,
    CAUGHT_US = 300000, /* a hint on its way when a worker died may come so late */
    RECLAIM_MS = 1000,
    PROMPT_TOKENS = 256, /* the longest, with its template */
    PATIENCE_MS = 1000,  /* of a client whose gateway is silent */
};

static struct {
    uint32_t answers, at_once, kills_min;
    bool tight;
    struct request *requests;
    struct client *recorded;
    double prefill_ms; /* of one token, at least */
    struct tally tally;
} run;

/* -- clients -- */

static uint32_t in_phase(const struct client *clients, uint32_t count, enum client_phase phase) {
    uint32_t in = 0;
    for (uint32_t i = 0; i < count; i++)
        in += clients[i].phase == (int)phase;
    return in;
}

/* Some tokens came: how many on average differs from round to round. */
static bool flows(const struct client *clients, uint32_t count, uint32_t number) {
    uint32_t streams = 0, chunks = 0;
    for (uint32_t i = 0; i < count; i++) {
        streams += clients[i].opts.request->stream;
        chunks += clients[i].chunk_count;
    }
    return chunks >= streams * (1 + number * 7 % FLOW_CHUNKS) ||
           in_phase(clients, count, CLIENT_ENDED) == count;
}

/* -- what a blow met -- */

/* Whom it had asked when that gateway was struck: where it began, unless it came back before. */
static bool met_gateway(const struct strike *strike, const struct client *client) {
    return client->opts.first == strike->victim->number;
}

/* The id of the generation of a choice, in hex. False: it is not known yet. */
static bool generation_id(const struct client *client, uint32_t choice, char id[RESP_ID_LEN + 1]) {
    static const char digits[] = "0123456789abcdef";
    const char *at = strchr(client->name, '-');
    if (!at || strlen(at + 1) < RESP_ID_LEN) return false;
    memcpy(id, at + 1, RESP_ID_LEN);
    id[RESP_ID_LEN - 1] = digits[choice];
    id[RESP_ID_LEN] = 0;
    return true;
}

static bool concerns(const struct strike *strike, const struct client *client) {
    char id[RESP_ID_LEN + 1];
    bool running = client->begun_us && client->begun_us < strike->at_us &&
                   (!client->ended_us || client->ended_us > strike->at_us);
    if (running && strike->fault->target == FAULT_GATEWAY) return met_gateway(strike, client);
    if (!running || strike->fault->target != FAULT_WORKER) return running;
    for (uint32_t i = 0; i < client->opts.request->choices; i++)
        if (generation_id(client, i, id) && proxy_ids_have(&strike->held, id)) return true;
    return false;
}

/* The longest silence that began when the worker died; 0: none. */
static double silence_ms(const struct strike *strike, const struct client *client) {
    uint64_t longest = 0, before = strike->at_us;
    for (uint32_t i = 0; i < client->chunk_count; i++) {
        uint64_t came = client->came_us[i];
        if (came <= strike->at_us) continue;
        if (before < strike->at_us + CAUGHT_US && came - before > longest) longest = came - before;
        before = came;
    }
    return (double)longest / 1000;
}

static uint32_t tokens_of(const struct client *client) {
    return client->choices[0].tokens + client->choices[1].tokens + client->usage;
}

/* A lease, a second for the reclaim, and the prefill of all that the dead worker had. */
static double allowed_ms(const struct strike *strike, const struct client *clients,
                         uint32_t count) {
    double tokens = 0;
    for (uint32_t i = 0; i < count; i++)
        if (concerns(strike, &clients[i])) tokens += PROMPT_TOKENS + tokens_of(&clients[i]);
    return CLUSTER_LEASE_MS + RECLAIM_MS + tokens * run.prefill_ms;
}

static void resumes_count(const struct strike *strike, const struct client *clients,
                          uint32_t count) {
    double allowed = allowed_ms(strike, clients, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct client *client = &clients[i];
        if (client->opts.request->choices > 1 || !concerns(strike, client)) continue;
        double ms = silence_ms(strike, client);
        if (ms * 1000 <= CAUGHT_US) continue;
        tally_resume(&run.tally, ms, allowed);
        if (ms > allowed)
            print_message("  answer %u went on after %.0f ms, %.0f are allowed\n",
                          client->opts.request->number, ms, allowed);
    }
}

static void strike_count(const struct strike *strike, const struct client *clients,
                         uint32_t count) {
    bool kill = strike->fault->signal == SIGKILL, hit = false;
    for (uint32_t i = 0; i < count && strike->at_us; i++)
        hit = hit || concerns(strike, &clients[i]);
    run.tally.unsprung += !strike->at_us;
    run.tally.kills += kill && strike->at_us;
    run.tally.stops += !kill && strike->at_us;
    run.tally.kills_hit += kill && hit;
    if (kill && strike->at_us) run.tally.in_prefill += strike->held.fresh;
    run.tally.stops_hit += !kill && hit;
}

/* -- judging -- */

static void judge(const struct client *client) {
    const struct request *request = client->opts.request;
    char why[CLIENT_WHY_MAX] = "";
    bool lost = !client->done || (*client->why && !client->repeated);
    bool same = lost || client_same(client, &run.recorded[request->number], why);
    run.tally.answers++;
    run.tally.choices += request->choices;
    run.tally.lost += lost;
    run.tally.repeated += client->repeated;
    run.tally.differing += !same;
    run.tally.asked_again += client->asked_again;
    run.tally.came_back += client->came_back;
    if (lost || !same || client->repeated)
        print_message("  answer %u (%s): %s%s\n", request->number, client->name, client->why, why);
}

/* -- a round -- */

static bool is_over(const struct client *clients, uint32_t count) {
    return in_phase(clients, count, CLIENT_ENDED) == count;
}

static void strike_await(struct strike *strike, const struct client *clients, uint32_t count) {
    uint64_t end_ms = fx_clock_ms() + STRIKE_MS;
    while (!strike_done(strike) && !is_over(clients, count) && fx_clock_ms() < end_ms)
        (void)usleep(1000);
    if (!strike_done(strike)) strike_give_up(strike);
}

/* Each fault meets the one and the other in turn. */
static uint32_t turn_of(uint32_t number) {
    return number / (uint32_t)round_count + number;
}

/* Who asks a gateway that is stopped gives it up after a while. */
static void gateway_leave(const struct strike *strike, struct client *clients, uint32_t count) {
    if (!strike->victim || strike->fault->target != FAULT_GATEWAY ||
        strike->fault->signal != SIGSTOP)
        return;
    (void)usleep(PATIENCE_MS * 1000);
    for (uint32_t i = 0; i < count; i++)
        if (clients[i].gateway == strike->victim->number) client_leave(&clients[i]);
}

static void strikes_run(struct strike *strikes, uint32_t number, struct client *clients,
                        uint32_t count) {
    const struct round *round = &rounds[number % round_count];
    if (!fault_is_early(&round->faults[0])) {
        WAIT_FOR(flows(clients, count, number), FLOW_MS, "no tokens flow");
        strike_begin(&strikes[0], &round->faults[0], turn_of(number));
    }
    strike_await(&strikes[0], clients, count);
    gateway_leave(&strikes[0], clients, count);
    if (!round->faults[1].target) return;
    strike_begin(&strikes[1], &round->faults[1], turn_of(number));
    strike_await(&strikes[1], clients, count);
}

static bool hits(const struct strike *strikes, enum fault_target target) {
    return strikes[0].fault->target == target ||
           (strikes[1].fault && strikes[1].fault->target == target);
}

/* Workers that live keep their leases, however long Redis was away. */
static void reclaimed_check(const struct strike *strikes, double before) {
    if (!hits(strikes, FAULT_WORKER) && !hits(strikes, FAULT_SCHEDULER))
        assert_int_equal(cluster_reclaimed() - before, 0);
}

static void after_round(struct strike *strikes, const struct client *clients, uint32_t count) {
    for (uint32_t i = 0; i < ROUND_FAULTS_MAX && strikes[i].fault; i++)
        strike_count(&strikes[i], clients, count);
    if (strikes[0].fault->target == FAULT_WORKER && strikes[0].at_us && !hits(strikes, FAULT_REDIS))
        resumes_count(&strikes[0], clients, count);
    for (uint32_t i = 0; i < ROUND_FAULTS_MAX && strikes[i].fault; i++)
        strike_heal(&strikes[i]);
    cluster_await_clean();
    run.tally.preemptions += cluster_preemptions();
}

static void round_run(uint32_t number, uint32_t first, uint32_t count) {
    static struct client clients[ROUND_MAX];
    const struct round *round = &rounds[number % round_count];
    struct strike strikes[ROUND_FAULTS_MAX] = {0};
    char name[ROUND_NAME_MAX];
    uint64_t begin_ms = fx_clock_ms();
    double reclaimed = cluster_reclaimed();
    round_name(round, name);
    if (fault_is_early(&round->faults[0]))
        strike_begin(&strikes[0], &round->faults[0], turn_of(number));
    for (uint32_t i = 0; i < count; i++)
        crowd_ask(&clients[i], &run.requests[first + i], "chaos");
    strikes_run(strikes, number, clients, count);
    for (uint32_t i = 0; i < count; i++)
        client_join(&clients[i]);
    for (uint32_t i = 0; i < count; i++)
        judge(&clients[i]);
    after_round(strikes, clients, count);
    reclaimed_check(strikes, reclaimed);
    print_message("round %u: %s: %u answers, %.1f s%s\n", number, name, count,
                  (double)(fx_clock_ms() - begin_ms) / 1000,
                  strikes[0].at_us ? "" : " (not struck)");
    for (uint32_t i = 0; i < count; i++)
        client_free(&clients[i]);
}

/* -- recording -- */

static void record(void) {
    uint64_t begin_ms = fx_clock_ms();
    crowd_record(run.recorded, run.requests, run.answers, RECORD_AT_ONCE);
    print_message("%u answers recorded, %.1f s\n", run.answers,
                  (double)(fx_clock_ms() - begin_ms) / 1000);
}

/* What one token of a prompt costs a worker, measured on a long one. */
static void prefill_measure(void) {
    struct request request;
    struct client client;
    request_make_long(400, 2, &request);
    uint64_t begin_us = fx_clock_us();
    crowd_ask(&client, &request, "prefill");
    client_join(&client);
    if (!client.done || !client.chunk_count) fail_msg("prefill: %s", client.why);
    run.prefill_ms = (double)(client.came_us[0] - begin_us) / 1000 / 400;
    print_message("a token of a prompt takes %.2f ms\n", run.prefill_ms);
    client_free(&client);
}

/* -- the test -- */

static void nothing_is_lost_repeated_or_left(void **state) {
    struct tally *tally = &run.tally;
    (void)state;
    prefill_measure();
    record();
    for (uint32_t first = 0, number = 0; first < run.answers; first += run.at_once, number++)
        round_run(number, first,
                  first + run.at_once < run.answers ? run.at_once : run.answers - first);
    tally_print(tally, stdout);
    assert_int_equal(tally->lost, 0);
    assert_int_equal(tally->repeated, 0);
    assert_int_equal(tally->differing, 0);
    assert_in_range(tally->kills_hit, run.kills_min, tally->kills);
    assert_true(tally->in_prefill > 0);
    if (run.tight)
        assert_true(tally->preemptions > 0);
    else
        assert_true(tally->resumes_late * 100 <= tally->resume_count); /* p99 */
}

static void args_read(int argc, char **argv) {
    uint32_t *const numbers[] = {&run.answers, &run.at_once, &run.kills_min};
    int count = (int)FX_TEST_COUNT(numbers);
    FX_ASSERT(argc == 2 + count);
    for (int i = 0; i < count; i++)
        *numbers[i] = (uint32_t)strtoul(argv[1 + i], NULL, 10);
    run.tight = strcmp(argv[1 + count], "tight") == 0;
    FX_ASSERT(run.tight || strcmp(argv[1 + count], "roomy") == 0);
    FX_ASSERT(run.answers > 0 && run.at_once > 0 && run.at_once <= ROUND_MAX);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_lost_repeated_or_left)};
    args_read(argc, argv);
    run.requests = calloc(run.answers, sizeof *run.requests);
    run.recorded = calloc(run.answers, sizeof *run.recorded);
    FX_ASSERT(run.requests && run.recorded);
    for (uint32_t i = 0; i < run.answers; i++)
        request_make(i, &run.requests[i]);
    int failed = cluster_main("chaos", tests, FX_TEST_COUNT(tests),
                              run.tight ? &cluster_small_opts : &cluster_opts);
    for (uint32_t i = 0; i < run.answers; i++)
        client_free(&run.recorded[i]);
    free(run.recorded);
    free(run.requests);
    return failed;
}
