#include "engine/philox.h"

enum { ROUNDS = 10 };

static void multiply(uint32_t factor, uint32_t value, uint32_t *high, uint32_t *low) {
    uint64_t product = (uint64_t)factor * value;
    *high = (uint32_t)(product >> 32);
    *low = (uint32_t)product;
}

struct fx_philox fx_philox4x32_10(const struct fx_philox *counter, const uint32_t key[2]) {
    struct fx_philox x = *counter;
    uint32_t key0 = key[0], key1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t high0, low0, high1, low1;
        multiply(0xD2511F53U, x.word[0], &high0, &low0);
        multiply(0xCD9E8D57U, x.word[2], &high1, &low1);
        x = (struct fx_philox){
            {high1 ^ x.word[1] ^ key0, low1, high0 ^ x.word[3] ^ key1, low0}
        };
        key0 += 0x9E3779B9U;
        key1 += 0xBB67AE85U;
    }
    return x;
}

double fx_philox_uniform(uint64_t seed, uint32_t choice, uint32_t position) {
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const struct fx_philox counter = {
        {position, choice, 0, 0}
    };
    struct fx_philox drawn = fx_philox4x32_10(&counter, key);
    uint64_t bits = ((uint64_t)drawn.word[1] << 32 | drawn.word[0]) >> 11;
    return (double)bits * 0x1p-53;
}
