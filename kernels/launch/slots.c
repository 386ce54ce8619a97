#include "kernels/launch/launch.h"

static void histogram(const int32_t *chosen, uint32_t count, uint32_t experts, uint32_t *offset) {
    for (uint32_t expert = 0; expert <= experts; expert++)
        offset[expert] = 0;
    for (uint32_t n = 0; n < count; n++)
        if (chosen[n] != FX_EXPERT_NONE) offset[chosen[n] + 1]++;
    for (uint32_t expert = 0; expert < experts; expert++)
        offset[expert + 1] += offset[expert];
}

void fx_slots(const int32_t *chosen, uint32_t count, uint32_t per_row, uint32_t experts,
              uint32_t *offset, uint32_t *slot, uint32_t *slot_row) {
    uint32_t taken[FX_EXPERTS_MAX] = {0};
    FX_ASSERT(experts <= FX_EXPERTS_MAX);
    histogram(chosen, count, experts, offset);
    for (uint32_t n = 0; n < count; n++) {
        if (chosen[n] == FX_EXPERT_NONE) continue;
        slot[n] = offset[chosen[n]] + taken[chosen[n]]++;
        slot_row[slot[n]] = n / per_row;
    }
}
