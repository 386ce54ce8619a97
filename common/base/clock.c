#include "common/base/clock.h"
#include <time.h>

static uint64_t now_us(clockid_t clock) {
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000U + (uint64_t)now.tv_nsec / 1000U;
}

uint64_t fx_clock_us(void) {
    return now_us(CLOCK_MONOTONIC);
}

uint64_t fx_clock_ms(void) {
    return fx_clock_us() / 1000U;
}

uint64_t fx_wall_ms(void) {
    return now_us(CLOCK_REALTIME) / 1000U;
}
