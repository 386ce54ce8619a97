#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { RESP_DIGITS_MAX = 6 };

/** hiredis takes a number of elements at its word and allocates them: such replies are left out. */
static inline bool resp_is_huge(const uint8_t *data, size_t size) {
    size_t digits = 0;
    for (size_t i = 0; i < size; i++) {
        digits = data[i] >= '0' && data[i] <= '9' ? digits + 1 : 0;
        if (digits > RESP_DIGITS_MAX && memchr(data, '*', i)) return true;
    }
    return false;
}
