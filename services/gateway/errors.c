#include "services/gateway/errors.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    unsigned status;
    const char *type, *code;
} table[] = {
    [GW_BAD_JSON] = {400, "invalid_request_error", "invalid_json"              },
    [GW_BAD_VALUE] = {400, "invalid_request_error", "invalid_value"             },
    [GW_MISSING] = {400, "invalid_request_error", "missing_required_parameter"},
    [GW_UNKNOWN] = {400, "invalid_request_error", "unknown_parameter"         },
    [GW_UNSUPPORTED] = {400, "invalid_request_error", "unsupported_parameter"     },
    [GW_TOO_LONG] = {400, "invalid_request_error", "context_length_exceeded"   },
    [GW_BAD_PROMPT] = {400, "invalid_request_error", "invalid_prompt"            },
    [GW_NO_TEMPLATE] = {400, "invalid_request_error", "no_chat_template"          },
    [GW_NO_KEY] = {401, "invalid_request_error", "missing_api_key"           },
    [GW_BAD_KEY] = {401, "invalid_request_error", "invalid_api_key"           },
    [GW_NO_MODEL] = {404, "invalid_request_error", "model_not_found"           },
    [GW_NO_GENERATION] = {404, "invalid_request_error", "generation_not_found"      },
    [GW_NO_ROUTE] = {404, "invalid_request_error", "unknown_url"               },
    [GW_NO_METHOD] = {405, "invalid_request_error", "method_not_allowed"        },
    [GW_OLD_HTTP] = {505, "invalid_request_error", "http_version"              },
    [GW_KEY_REUSED] = {422, "invalid_request_error", "idempotency_key_reused"    },
    [GW_BUSY] = {429, "rate_limit_error",      "queue_full"                },
    [GW_LIMITED] = {429, "rate_limit_error",      "rate_limit_exceeded"       },
    [GW_UNAVAILABLE] = {503, "server_error",          "unavailable"               },
    [GW_SHUTTING_DOWN] = {503, "server_error",          "gateway_shutting_down"     },
    [GW_FAILED] = {500, "server_error",          "generation_failed"         },
    [GW_STALLED] = {503, "server_error",          "generation_stalled"        },
    [GW_WORKER_LOST] = {503, "server_error",          "worker_lost"               },
    [GW_SLOW] = {408, "invalid_request_error", "slow_reader"               },
    [GW_CANCELLED] = {500, "server_error",          "generation_cancelled"      },
    [GW_INTERNAL] = {500, "server_error",          "internal_error"            },
};

void gw_problem_set(struct gw_problem *problem, enum gw_reason reason, const char *param,
                    const char *fmt, ...) {
    va_list args;
    problem->reason = reason;
    (void)snprintf(problem->param, sizeof problem->param, "%s", param ? param : "");
    va_start(args, fmt);
    (void)vsnprintf(problem->message, sizeof problem->message, fmt, args);
    va_end(args);
    bool later = table[reason].status == 429 || table[reason].status == 503;
    problem->retry_ms = later ? GW_RETRY_MS : 0;
    problem->no_retry = reason == GW_CANCELLED || reason == GW_OLD_HTTP;
}

void gw_problem_of_rpc(struct gw_problem *problem, enum fx_code code, const char *text,
                       uint32_t retry_ms, const char *what) {
    switch (code) {
    case FX_RESOURCE_EXHAUSTED:
        gw_problem_set(problem, GW_BUSY, NULL, "%s", *text ? text : "too many requests");
        break;
    case FX_UNAVAILABLE:
    case FX_DEADLINE_EXCEEDED:
    case FX_CANCELLED:
    case FX_ABORTED:
        gw_problem_set(problem, GW_UNAVAILABLE, NULL, "%s: %s", what, *text ? text : "unavailable");
        break;
    case FX_INVALID_ARGUMENT: gw_problem_set(problem, GW_BAD_PROMPT, NULL, "%s", text); break;
    case FX_OUT_OF_RANGE: gw_problem_set(problem, GW_TOO_LONG, NULL, "%s", text); break;
    default: gw_problem_set(problem, GW_INTERNAL, NULL, "%s failed", what);
    }
    if (problem->retry_ms && retry_ms) problem->retry_ms = retry_ms;
}

struct fx_http_problem gw_problem_http(const struct gw_problem *problem) {
    return (struct fx_http_problem){
        .status = table[problem->reason].status,
        .type = table[problem->reason].type,
        .code = table[problem->reason].code,
        .param = *problem->param ? problem->param : NULL,
        .message = problem->message,
        .retry_ms = problem->retry_ms,
        .no_retry = problem->no_retry,
        .retry = problem->reason == GW_WORKER_LOST,
    };
}
