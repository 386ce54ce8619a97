#include <stdlib.h>
#include <sys/resource.h>
#include "common/base/log.h"
#include "common/rpc/service.h"
#include "services/gateway/process.h"

static enum fx_log_level level_of(const char *name) {
    static const char *const names[] = {"debug", "info", "warn", "error"};
    for (size_t i = 0; i < FX_COUNT(names); i++)
        if (strcmp(names[i], name) == 0) return (enum fx_log_level)i;
    return FX_LOG_INFO;
}

/* Shells often allow 1024 descriptors: fewer than connections_max needs. */
static void files_raise(const struct gw_config *config) {
    enum { REST = 256, OF_LOOP = 32 }; /* listeners, Redis, gRPC */
    struct rlimit limit;
    rlim_t want = (rlim_t)config->connections_max + REST + gw_config_loops(config) * OF_LOOP;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= want) return;
    limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < want)
        fx_log(FX_LOG_WARN, FX_EVENT("few_descriptors"), FX_KI("allowed", limit.rlim_cur),
               FX_KI("wanted", want),
               FX_KS("remedy", "raise ulimit -n, or lower FX_CONNECTIONS_MAX"));
}

static FX_MUST bool serve(fx_error *err) {
    struct gw_config config;
    struct gw_process *process = NULL;
    if (!gw_config_load(&config, err)) return false;
    fx_log_level_min(level_of(config.log_level));
    files_raise(&config);
    if (!gw_process_open(&config, &process, err)) return false;
    fx_log(FX_LOG_INFO, FX_EVENT("ready"), FX_KS("addr", config.http_addr),
           FX_KI("port", gw_process_port(process)),
           FX_KI("grpc_port", gw_process_rpc_port(process)), FX_KI("loops", process->loop_count),
           FX_KS("version", FX_VERSION));
    int number = fx_signal_wait();
    fx_log(FX_LOG_INFO, FX_EVENT("draining"), FX_KI("signal", number));
    gw_process_drain(process);
    gw_process_close(process);
    fx_log(FX_LOG_INFO, FX_EVENT("ended"));
    return true;
}

int main(int argc, char **argv) {
    fx_error err = {0};
    bool helped = false;
    fx_log_service("gateway");
    fx_signal_block(); /* before any thread */
    bool ok = fx_service_args(argc, argv, "fractal-gateway",
                              "the HTTP front door: OpenAI routes over the services",
                              gw_config_rows, gw_config_row_count, &helped, &err);
    if (ok && helped) return EXIT_SUCCESS;
    ok = ok && serve(&err);
    return fx_exit(ok, &err);
}
