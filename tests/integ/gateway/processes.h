#pragma once
/* The real programs, each a process of its own, on free ports and a real Redis. */
#include "common/rpc/client.h"
#include "tests/integ/queue/redis_fixture.h"
#include "tests/unit/http/wire.h"

struct process {
    pid_t pid;
    char grpc[32], admin[32]; /* 127.0.0.1:port */
    fx_client *client;        /* opened at the first call */
};

struct processes {
    struct redis_fixture redis;
    char folder[64], token[65], key[128];
    char http[32];
    struct process tenant, slicer, scheduler, gateway, workers[2];
};

/** Redis, tenant, slicer (with the bundled model), scheduler, two workers, gateway, a tenant and a
 *  key; all of them ready. */
void processes_start(struct processes *all);
/** SIGKILL for what still runs; removes the folder. */
void processes_stop(struct processes *all);
/** An administrator's unary call. */
void processes_call(struct process *process, const struct processes *all,
                    struct fx_client_request *request, void *out);
/** One more key of the test's tenant. */
void processes_key(struct processes *all, char out[128]);
uint16_t processes_port(const char *address);
