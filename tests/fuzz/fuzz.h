#pragma once
#include <stddef.h>
#include <stdint.h>

/** One fuzzed input; returns 0. A finding is a crash: FX_ASSERT what must hold. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
