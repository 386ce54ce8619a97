#pragma once
/* What happens in each round of a chaos run. */
#include "tests/chaos/cluster.h"

enum { ROUND_FAULTS_MAX = 2, ROUND_NAME_MAX = 120 };

struct round {
    struct fault faults[ROUND_FAULTS_MAX]; /* the second as soon as the first has struck */
};
extern const struct round rounds[];
extern const size_t round_count;

/** Its call comes before there are tokens: the trap is set before the clients ask. */
bool fault_is_early(const struct fault *fault);
/** "worker killed before an append, scheduler stopped". */
void round_name(const struct round *round, char out[ROUND_NAME_MAX]);
