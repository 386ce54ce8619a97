#include "services/cli/chat_model.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "common/base/heap.h"
#include "services/cli/cli.h"
#include "services/cli/http.h"

FX_DEFINE_AUTO(json_t, json_decref)

static const char *name_of(const json_t *models, size_t i) {
    const char *name = json_string_value(json_object_get(json_array_get(models, i), "id"));
    return name ? name : "?";
}

static FX_MUST bool choose(const json_t *models, char out[CLI_MODEL_NAME_MAX], fx_error *err) {
    size_t count = json_array_size(models), used = 0;
    char names[160] = "";
    if (count == 0)
        return fx_fail(err, FX_FAILED_PRECONDITION, "no model yet (./fractal import adds one)");
    for (size_t i = 0; i < count && used < sizeof names; i++) {
        int len =
            snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", name_of(models, i));
        used += len > 0 ? (size_t)len : 0;
    }
    if (count > 1)
        return fx_fail(err, FX_FAILED_PRECONDITION, "several models, choose by --model: %s", names);
    if (strlen(name_of(models, 0)) >= CLI_MODEL_NAME_MAX)
        return fx_fail(err, FX_DATA_LOSS, "the model's name is too long");
    (void)snprintf(out, CLI_MODEL_NAME_MAX, "%s", name_of(models, 0));
    return true;
}

bool cli_only_model(const char *base_url, const char *api_key, char out[CLI_MODEL_NAME_MAX],
                    fx_error *err) {
    char url[CLI_URL_MAX + 32];
    struct cli_http_reply reply = {0};
    (void)snprintf(url, sizeof url, "%s/v1/models", base_url);
    if (!cli_http(&(struct cli_http_request){.url = url, .api_key = api_key}, &reply, err))
        return false;
    fx_auto(char) body = reply.body;
    if (reply.status != 200) return cli_http_refused(&reply, err);
    fx_auto(json_t) root = json_loadb(body, reply.body_len, 0, NULL);
    const json_t *models = json_object_get(root, "data");
    if (!json_is_array(models)) return fx_fail(err, FX_DATA_LOSS, "%s: not a list", url);
    return choose(models, out, err);
}
