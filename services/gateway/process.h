#pragma once
#include "common/http/admin.h"
#include "common/rpc/server.h"
#include "services/gateway/gateway.h"

struct gw_vocabs;

/** What the process has once: its loops (FX_HTTP_LOOPS of them, each a struct gateway with a
 *  listener on the same port), and what they share. */
struct gw_process {
    const struct gw_config *config;
    fx_http_tls *tls;         /* of the HTTP port */
    char http_addr[96];       /* with the port that the first loop got */
    struct gw_vocabs *vocabs; /* tokenizers, one copy for all loops */
    fx_server *rpc;           /* the public gRPC API: calls go to the loops in turn */
    fx_admin *admin;
    atomic_uint connections; /* open ones of all loops: FX_CONNECTIONS_MAX holds for the process */
    atomic_uint turn;        /* whose the next gRPC call is */
    atomic_bool draining;
    uint32_t loop_count;
    struct gateway loops[GW_LOOPS_MAX];
};

/** Opens all of it and serves. `config` is borrowed.
 *  @own caller, gw_process_close @err as the parts, naming the part */
FX_MUST bool gw_process_open(const struct gw_config *config, struct gw_process **out,
                             fx_error *err);
uint16_t gw_process_port(const struct gw_process *process);
uint16_t gw_process_rpc_port(const struct gw_process *process);
/** The loop that a gRPC call goes to: in turn. @thread any */
struct gateway *gw_process_next(struct gw_process *process);
/** Do all loops know the models, and Redis? @thread any */
bool gw_process_listed(const struct gw_process *process);
bool gw_process_redis_ready(const struct gw_process *process);
/** Answers new requests with 503, lets running answers end for health.drain_ms, then ends them with
 *  an error, and stops listening.
 *  @thread the opener's */
void gw_process_drain(struct gw_process *process);
/** Ends everything; NULL is fine. @thread the opener's */
void gw_process_close(struct gw_process *process);
