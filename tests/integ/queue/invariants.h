#pragma once
#include "tests/integ/queue/rig.h"

/** Fails the test unless all that must hold between two calls holds: each of the
 * generations 1..gens, of tenant n % tenants + 1 and with tokens n * 100 + i, is in the one place
 * that its state names; counters count, nothing that has ended is left anywhere, logs hold the
 * tokens and nothing else; the group's lag is known and true, and fx_queue_stats() tells how many
 * wait and run. */
void rig_check(struct rig *rig, uint32_t gens, uint32_t tenants);
