/* All parameters at once against a plain implementation in double precision that sorts and scans,
 * written from the documentation in sampler.h and sharing nothing with the sampler but Philox. */
#include "engine/sampler.h"
#include "engine/philox.h"
#include "tests/fx_test.h"
#include <math.h>
#include <stdlib.h>

enum { VOCAB = 257, HISTORY = 60, PROMPT = 25, STOPS = 3, BIASES = 5, CASES = 6000 };
#define CLOSE 1e-5 /* a case this near to an edge says nothing: f32 may fall on its other side */

static uint32_t random_state = 7;
static double uniform(double low, double high) {
    random_state = random_state * 1664525U + 1013904223U;
    return low + (high - low) * (double)(random_state >> 8) / 16777216.0;
}
static uint32_t below(uint32_t bound) {
    return (uint32_t)uniform(0, bound);
}
static bool maybe(void) {
    return below(2);
}

struct sample_case {
    float logits[VOCAB];
    uint32_t ids[HISTORY], stops[STOPS];
    struct fx_bias bias[BIASES];
    struct fx_sampling sampling;
    struct fx_sample_row row;
};

static void sampling_fill(struct sample_case *c) {
    c->sampling = (struct fx_sampling){
        .temperature = (float)uniform(0.1, 2),
        .top_k = maybe() ? 1 + below(VOCAB + 20) : 0,
        .top_p = maybe() ? (float)uniform(0.05, 1) : 0,
        .min_p = maybe() ? (float)uniform(0, 0.3) : 0,
        .typical_p = maybe() ? (float)uniform(0.1, 1) : 0,
        .presence = maybe() ? (float)uniform(-2, 2) : 0,
        .frequency = maybe() ? (float)uniform(-2, 2) : 0,
        .repetition = maybe() ? (float)uniform(0.5, 2) : 1,
        .min_tokens = maybe() ? below(HISTORY) : 0,
        .seed = below(1U << 30),
        .choice = below(4),
        .bias = c->bias,
        .bias_count = maybe() ? BIASES : 0,
    };
    if (below(8) == 0) c->sampling.temperature = 0;
}

static void case_fill(struct sample_case *c) {
    for (uint32_t i = 0; i < VOCAB; i++)
        c->logits[i] = (float)uniform(-6, 6);
    for (uint32_t i = 0; i < HISTORY; i++)
        c->ids[i] = below(maybe() ? 20 : VOCAB);
    for (uint32_t i = 0; i < STOPS; i++)
        c->stops[i] = below(VOCAB);
    for (uint32_t i = 0; i < BIASES; i++)
        c->bias[i] = (struct fx_bias){i * 50 + below(50), (float)uniform(-8, 8)};
    sampling_fill(c);
    c->row = (struct fx_sample_row){c->logits, VOCAB, 1 + below(HISTORY - PROMPT), c->ids, PROMPT,
                                    c->stops,  STOPS};
}

/* ---- the plain one ---- */

struct candidate {
    uint32_t id;
    double logit, weight, key;
};

static int by_key(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (x->key > y->key) return -1;
    if (x->key < y->key) return 1;
    return x->id < y->id ? -1 : 1;
}

static double adjusted(const struct sample_case *c, uint32_t id) {
    const struct fx_sampling *s = &c->sampling;
    double logit = (double)c->logits[id];
    uint32_t made = 0, in_prompt = 0, generated = c->row.number - 1;
    for (uint32_t i = 0; i < PROMPT; i++)
        in_prompt += c->ids[i] == id;
    for (uint32_t i = 0; i < generated; i++)
        made += c->ids[PROMPT + i] == id;
    for (uint32_t i = 0; i < STOPS; i++)
        if (generated < s->min_tokens && c->stops[i] == id) return -INFINITY;
    for (uint32_t i = 0; i < s->bias_count; i++)
        if (s->bias[i].id == id) logit += (double)s->bias[i].value;
    if (made + in_prompt)
        logit = logit > 0 ? logit / (double)s->repetition : logit * (double)s->repetition;
    logit -= (double)s->frequency * made;
    return made ? logit - (double)s->presence : logit;
}

static double total(const struct candidate *at, uint32_t count) {
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += at[i].weight;
    return sum;
}

/* The shortest prefix that has `share` of the weight; `close`: it nearly was another. */
static uint32_t prefix(const struct candidate *at, uint32_t count, double share, bool *close) {
    double sum = total(at, count), reached = 0;
    for (uint32_t i = 0; i < count; i++) {
        reached += at[i].weight;
        if (fabs(reached / sum - share) < CLOSE) *close = true;
        if (reached >= share * sum) return i + 1;
    }
    return count;
}

static void sort(struct candidate *at, uint32_t count, bool *close) {
    qsort(at, count, sizeof *at, by_key);
    for (uint32_t i = 1; i < count; i++)
        if (at[i - 1].weight > 1e-9 && fabs(at[i - 1].key - at[i].key) < 1e-6) *close = true;
}

static uint32_t filter(const struct fx_sampling *s, struct candidate *at, bool *close) {
    uint32_t count = VOCAB;
    if (s->top_k && s->top_k < count) {
        sort(at, count, close);
        count = s->top_k;
    }
    if (s->top_p > 0 && s->top_p < 1) {
        sort(at, count, close);
        count = prefix(at, count, (double)s->top_p, close);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (fabs(at[i].weight - (double)s->min_p) < CLOSE && s->min_p > 0) *close = true;
        if (at[i].weight >= (double)s->min_p) at[kept++] = at[i];
    }
    count = kept;
    if (!(s->typical_p > 0 && s->typical_p < 1)) return count;
    double sum = total(at, count), entropy = 0;
    for (uint32_t i = 0; i < count; i++)
        if (at[i].weight > 0) entropy -= at[i].weight / sum * log(at[i].weight / sum);
    for (uint32_t i = 0; i < count; i++)
        at[i].key = -fabs(-log(at[i].weight / sum) - entropy);
    sort(at, count, close);
    return prefix(at, count, (double)s->typical_p, close);
}

/* Is `token` what the draw gives? */
static bool is_drawn(const struct sample_case *c, uint32_t token, bool *close) {
    struct candidate at[VOCAB];
    double highest = -INFINITY, reached = 0;
    for (uint32_t i = 0; i < VOCAB; i++) {
        at[i] = (struct candidate){i, adjusted(c, i), 0, 0};
        if (at[i].logit > highest) highest = at[i].logit;
    }
    if (c->sampling.temperature == 0) return adjusted(c, token) >= highest - 1e-5;
    for (uint32_t i = 0; i < VOCAB; i++) {
        at[i].weight = exp((at[i].logit - highest) / (double)c->sampling.temperature);
        at[i].key = at[i].logit;
    }
    uint32_t count = filter(&c->sampling, at, close);
    double target =
        fx_philox_uniform(c->sampling.seed, c->sampling.choice, c->row.number) * total(at, count);
    for (uint32_t i = 0; i < count; i++) {
        double from = reached;
        reached += at[i].weight;
        if (at[i].id == token) return target > from - 1e-4 && target < reached + 1e-4;
    }
    return false;
}

static uint32_t sampled(const struct sample_case *c) {
    float weights[VOCAB], logits[VOCAB];
    uint32_t ids[VOCAB], token = UINT32_MAX;
    const struct fx_sample_scratch scratch = {weights, logits, ids};
    fx_error err = {0};
    assert_true(fx_sampling_check(&c->sampling, VOCAB, &err));
    if (!fx_sample(&c->sampling, &c->row, &scratch, &token, &err)) fail_msg("%s", err.text);
    assert_true(token < VOCAB);
    return token;
}

static void test_against_plain(void **state) {
    (void)state;
    uint32_t compared = 0;
    static struct sample_case c;
    for (uint32_t i = 0; i < CASES; i++) {
        bool close = false;
        case_fill(&c);
        uint32_t token = sampled(&c);
        bool same = is_drawn(&c, token, &close);
        if (close) continue;
        compared++;
        if (!same) fail_msg("case %u: token %u was not to be drawn", i, token);
    }
    assert_true(compared > CASES / 2);
}

/* ---- each adjustment by itself: greedy over four logits ---- */

enum { SMALL = 4 };
static const uint32_t history[] = {0, 1, 2, 2, 1}; /* two of the prompt, three generated */
static const struct fx_bias lift[] = {
    {3, 2.5F},
    {0, -1  }
};
static const struct small {
    const char *name;
    float logits[SMALL];
    struct fx_sampling sampling;
    uint32_t want;
} smalls[] = {
    {"nothing",                        {3, 1, 2, 0.5F},     {.temperature = 0},              0},
    {"bias lifts",                     {3, 1, 2, 0.6F},     {.bias = lift, .bias_count = 2}, 3},
    {"bias lowers",                    {3, 1, 2.5F, -1},    {.bias = lift, .bias_count = 2}, 2},
    {"presence: generated only",       {3, 1, 3.5F, 1},     {.presence = 0.6F},              0},
    {"presence once, not twice",       {0, 2, 3, 1.5F},     {.presence = 1.4F},              2},
    {"frequency counts",               {0, 2, 3, 1},        {.frequency = 1.1F},             3},
    {"frequency below zero rewards",   {2.5F, 1, 2, 0},     {.frequency = -0.5F},            2},
    {"repetition: the prompt too",     {3, 0, 0, 2},        {.repetition = 2},               3},
    {"repetition of negative logits",  {-3, -3, -3, -5},    {.repetition = 2},               3},
    {"repetition below one",           {-1, -1, -1, -0.8F}, {.repetition = 0.5F},            0},
    {"repetition 0 is off",            {3, 0, 0, 2},        {.repetition = 0},               0},
    {"a stop id waits for min_tokens", {3, 1, 2, 0.5F},     {.min_tokens = 4},               2},
    {"min_tokens reached",             {3, 1, 2, 0.5F},     {.min_tokens = 3},               0},
    {"a stop id, though biased",
     {3, 1, 0, 2},
     {.min_tokens = 9, .bias = &(const struct fx_bias){0, 100}, .bias_count = 1},
     3                                                                                        },
};

static void test_small(void **state) {
    const struct small *small = *state;
    float weights[SMALL], logits[SMALL];
    uint32_t ids[SMALL], token = SMALL, stop = 0;
    const struct fx_sample_scratch scratch = {weights, logits, ids};
    const struct fx_sample_row row = {small->logits, SMALL, 4, history, 2, &stop, 1};
    assert_true(fx_sample(&small->sampling, &row, &scratch, &token, &(fx_error){0}));
    assert_int_equal(token, small->want);
}

/* Everything held back: this row fails, and says so. */
static void test_nothing_left(void **state) {
    (void)state;
    float weights[2], logits[2];
    const float equal[2] = {1, 1};
    const uint32_t stops[2] = {0, 1};
    uint32_t ids[2], token = 9;
    const struct fx_sample_scratch scratch = {weights, logits, ids};
    const struct fx_sample_row row = {equal, 2, 1, NULL, 0, stops, 2};
    fx_error err = {0};
    assert_false(fx_sample(&(struct fx_sampling){.min_tokens = 1}, &row, &scratch, &token, &err));
    assert_int_equal(err.code, FX_DATA_LOSS);
    assert_int_equal(token, 9);
}

/* Draws follow the filtered, penalised distribution. */
static void test_distribution(void **state) {
    (void)state;
    enum { COUNT = 40000 };
    const float raw[SMALL] = {1, 2, 3, 0.5F};
    const struct fx_bias bias = {3, 1.5F};
    double weight[SMALL], sum = 0;
    uint32_t counts[SMALL] = {0}, ids[SMALL], token = 0;
    float weights[SMALL], logits[SMALL];
    const struct fx_sample_scratch scratch = {weights, logits, ids};
    const double want[SMALL] = {1 / 1.25, 2 / 1.25 - 0.3 - 0.5, 3 / 1.25 - 2 * 0.3 - 0.5, 2};
    for (uint32_t i = 0; i < SMALL; i++)
        sum += weight[i] = exp(want[i] / 1.3);
    for (uint64_t seed = 0; seed < COUNT; seed++) {
        const struct fx_sampling sampling = {.temperature = 1.3F,
                                             .seed = seed,
                                             .repetition = 1.25F,
                                             .frequency = 0.3F,
                                             .presence = 0.5F,
                                             .bias = &bias,
                                             .bias_count = 1};
        const struct fx_sample_row row = {raw, SMALL, 4, history, 2, NULL, 0};
        assert_true(fx_sample(&sampling, &row, &scratch, &token, &(fx_error){0}));
        counts[token]++;
    }
    for (uint32_t i = 0; i < SMALL; i++) {
        double p = weight[i] / sum;
        assert_true(fabs((double)counts[i] - p * COUNT) <= 4 * sqrt(p * (1 - p) * COUNT) + 1);
    }
}

int main(void) {
    struct CMUnitTest tests[FX_TEST_COUNT(smalls) + 3] = {
        cmocka_unit_test(test_against_plain),
        cmocka_unit_test(test_nothing_left),
        cmocka_unit_test(test_distribution),
    };
    for (size_t i = 0; i < FX_TEST_COUNT(smalls); i++)
        tests[3 + i] = (struct CMUnitTest){smalls[i].name, test_small, NULL, NULL,
                                           (void *)(uintptr_t)&smalls[i]};
    return _cmocka_run_group_tests("sampling", tests, FX_TEST_COUNT(tests), NULL, NULL);
}
