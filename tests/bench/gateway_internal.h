#pragma once
/* Private to tests/bench/gateway*.c: what a measurement of the gateway stands on. */
#include "tests/bench/bench.h"
#include "tests/bench/child.h"
#include "tests/bench/load.h"

/* The gateway and the echo have a core of their own; all that is not measured shares the other. */
enum { STAND_SERVER_CORE = 0, STAND_CLIENT_CORE = 1, STAND_CONNECTIONS_MAX = 12000 };

struct stand {
    char folder[64], log[96];
    struct source_opts source_opts;
    struct bench_child echo, source, gateway;
    uint16_t echo_port, source_port, port;
};

/** Echo, token source and a gateway that is ready. After a failure too, stand_close(). */
FX_MUST bool stand_open(struct stand *stand, fx_error *err);
void stand_close(struct stand *stand);
/** A fresh gateway in place of the one before. */
FX_MUST bool stand_gateway(struct stand *stand, fx_error *err);
/** load_run() against the gateway: port, model, key and process are filled in. An answer that
 *  failed or is wrong is an error. */
FX_MUST bool stand_load(struct stand *stand, struct load_opts opts, struct load_result *out,
                        fx_error *err);

/** What stands in `./fractal bench gateway`, each over a stand. */
FX_MUST bool gateway_answers(struct stand *stand, fx_error *err);
FX_MUST bool gateway_events(struct stand *stand, fx_error *err);
FX_MUST bool gateway_streams(struct stand *stand, fx_error *err);
/** Over a stand, a suite of its own. */
FX_MUST bool gateway_latency(fx_error *err);
FX_MUST bool gateway_path(fx_error *err);
