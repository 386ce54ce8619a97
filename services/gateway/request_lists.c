/* The fields that are lists: stop and logit_bias. */
#include <string.h>
#include "common/base/heap.h"
#include "services/gateway/request.h"

static FX_MUST bool stop_add(const json_t *value, struct gw_request *out,
                             struct gw_problem *problem) {
    size_t len = json_string_length(value);
    const char *text = json_string_value(value);
    if (!text || !len || len > GW_STOP_BYTES_MAX || strlen(text) != len)
        return gw_refuse(problem, GW_BAD_VALUE, "stop",
                         "stop must be 1 to %d strings of 1 to %d bytes", GW_STOPS_MAX,
                         GW_STOP_BYTES_MAX);
    char *copy = fx_strdup(text);
    if (!copy) return gw_refuse(problem, GW_UNAVAILABLE, NULL, "no memory for the request");
    out->stop[out->stop_count++] = copy;
    return true;
}

bool gw_request__stop(const json_t *value, struct gw_request *out, struct gw_problem *problem) {
    if (!json_is_array(value)) return stop_add(value, out, problem);
    if (json_array_size(value) > GW_STOPS_MAX)
        return gw_refuse(problem, GW_BAD_VALUE, "stop", "stop has more than %d strings",
                         GW_STOPS_MAX);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!stop_add(json_array_get(value, i), out, problem)) return false;
    return true;
}

/* Digits without a zero before them, below 2^32. */
static bool id_read(const char *key, uint32_t *out) {
    uint64_t id = 0;
    size_t len = strlen(key);
    if (!len || len > 10 || (len > 1 && key[0] == '0')) return false;
    for (size_t i = 0; i < len; i++) {
        if (key[i] < '0' || key[i] > '9') return false;
        id = id * 10 + (uint64_t)(key[i] - '0');
    }
    *out = (uint32_t)id;
    return id <= UINT32_MAX;
}

static FX_MUST bool bias_add(const char *key, const json_t *value, struct gw_request *out,
                             struct gw_problem *problem) {
    double number = json_number_value(value);
    struct gw_bias *bias = &out->bias[out->bias_count++];
    if (!id_read(key, &bias->id))
        return gw_refuse(problem, GW_BAD_VALUE, "logit_bias", "logit_bias: a key is no token id");
    if (!json_is_number(value) || !(number >= -100 && number <= 100))
        return gw_refuse(problem, GW_BAD_VALUE, "logit_bias",
                         "logit_bias: each bias must be a number from -100 to 100");
    bias->value = (float)number;
    return true;
}

bool gw_request__logit_bias(json_t *value, struct gw_request *out, struct gw_problem *problem) {
    const char *key;
    json_t *number;
    if (!json_is_object(value))
        return gw_refuse(problem, GW_BAD_VALUE, "logit_bias",
                         "logit_bias must be an object of token ids and biases");
    size_t count = json_object_size(value);
    if (count > GW_BIASES_MAX)
        return gw_refuse(problem, GW_BAD_VALUE, "logit_bias", "logit_bias has more than %d tokens",
                         GW_BIASES_MAX);
    if (!count) return true;
    out->bias = fx_alloc(count, sizeof *out->bias);
    if (!out->bias) return gw_refuse(problem, GW_UNAVAILABLE, NULL, "no memory for the request");
    json_object_foreach(value, key, number) if (!bias_add(key, number, out, problem)) return false;
    return true;
}

bool gw_request_check_ids(const struct gw_request *request, uint32_t vocabulary,
                          struct gw_problem *problem) {
    for (uint32_t i = 0; i < request->bias_count; i++)
        if (request->bias[i].id >= vocabulary)
            return gw_refuse(problem, GW_BAD_VALUE, "logit_bias",
                             "logit_bias: token %u; the vocabulary has %u tokens",
                             request->bias[i].id, vocabulary);
    return true;
}
