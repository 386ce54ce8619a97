#pragma once
#include <jansson.h>
#include "common/base/span.h"

/** How much of a snapshot of GET /v1/telemetry is shown. */
struct cli_top_view {
    uint32_t width; /* columns; 0: as many as there are */
};

/** A line of sums, one of titles, then one a model and one a worker, each ended by LF. The least
 *  important columns go first where the width does not hold all. Nothing of the snapshot can steer
 *  a terminal. What is not known is "-". */
void cli_top_table(const json_t *snapshot, const struct cli_top_view *view, fx_buf *out);
