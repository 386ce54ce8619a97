#pragma once
#include <stdint.h>

/** Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"): 128 random bits
 *  that depend on counter and key alone, so that a resumed generation draws the same. Pure. */
struct fx_philox {
    uint32_t word[4];
};
struct fx_philox fx_philox4x32_10(const struct fx_philox *counter, const uint32_t key[2]);

/** Uniform in [0, 1), 53 bits: words 0 and 1 of counter (position, choice, 0, 0) under `seed`. */
double fx_philox_uniform(uint64_t seed, uint32_t choice, uint32_t position);
