#pragma once
#include <stdint.h>

/** Monotonic, for deadlines and durations. @thread any */
uint64_t fx_clock_us(void);
uint64_t fx_clock_ms(void);
/** Milliseconds since 1970, for records only. */
uint64_t fx_wall_ms(void);
