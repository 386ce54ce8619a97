#include "services/gateway/messages.h"
#include <stdio.h>
#include <string.h>
#include "common/base/heap.h"

static const char *const roles[] = {"system", "developer", "user", "assistant"};

static const char *const served[] = {"role", "content", "name"};

static bool role_check(const json_t *role, const char *at, struct gw_problem *problem) {
    char param[GW_PARAM_MAX];
    (void)snprintf(param, sizeof param, "%s.role", at);
    for (size_t i = 0; json_is_string(role) && i < FX_COUNT(roles); i++)
        if (strcmp(json_string_value(role), roles[i]) == 0) return true;
    if (json_is_string(role) && (strcmp(json_string_value(role), "tool") == 0 ||
                                 strcmp(json_string_value(role), "function") == 0))
        return gw_refuse(problem, GW_UNSUPPORTED, param, "tools are not supported");
    return gw_refuse(problem, GW_BAD_VALUE, param,
                     "role must be system, developer, user or assistant");
}

static bool part_check(const json_t *part, const char *at, size_t index,
                       struct gw_problem *problem) {
    char param[GW_PARAM_MAX];
    const json_t *type = json_object_get(part, "type");
    (void)snprintf(param, sizeof param, "%s.content[%zu]", at, index);
    if (!json_is_object(part) || !json_is_string(type))
        return gw_refuse(problem, GW_BAD_VALUE, param, "a content part is an object with a type");
    if (strcmp(json_string_value(type), "text") != 0)
        return gw_refuse(problem, GW_UNSUPPORTED, param, "only text parts are supported");
    if (!json_is_string(json_object_get(part, "text")))
        return gw_refuse(problem, GW_BAD_VALUE, param, "a text part needs a string named text");
    return true;
}

static bool content_check(const json_t *content, const char *at, struct gw_problem *problem) {
    char param[GW_PARAM_MAX];
    (void)snprintf(param, sizeof param, "%s.content", at);
    if (json_is_string(content)) return true;
    if (!json_is_array(content) || !json_array_size(content))
        return gw_refuse(problem, content ? GW_BAD_VALUE : GW_MISSING, param,
                         "content must be a string or an array of text parts");
    for (size_t i = 0; i < json_array_size(content); i++)
        if (!part_check(json_array_get(content, i), at, i, problem)) return false;
    return true;
}

static bool name_check(const json_t *name, const char *at, struct gw_problem *problem) {
    char param[GW_PARAM_MAX];
    if (!name || json_is_null(name) || json_is_string(name)) return true;
    (void)snprintf(param, sizeof param, "%s.name", at);
    return gw_refuse(problem, GW_BAD_VALUE, param, "name must be a string");
}

static bool members_check(json_t *message, const char *at, struct gw_problem *problem) {
    const char *key;
    json_t *value;
    json_object_foreach(message, key, value) {
        bool known = json_is_null(value) || (json_is_array(value) && !json_array_size(value));
        for (size_t i = 0; i < FX_COUNT(served); i++)
            known |= strcmp(key, served[i]) == 0;
        if (known) continue;
        char param[GW_PARAM_MAX];
        (void)snprintf(param, sizeof param, "%s.%s", at, key);
        return gw_refuse(problem, GW_UNSUPPORTED, param,
                         "this member of a message is not supported");
    }
    return true;
}

bool gw_messages_check(const json_t *messages, struct gw_problem *problem) {
    size_t count = json_array_size(messages);
    if (!json_is_array(messages) || count < 1 || count > FX_TEMPLATE_MESSAGES_MAX)
        return gw_refuse(problem, GW_BAD_VALUE, "messages", "messages must be an array of 1 to %d",
                         FX_TEMPLATE_MESSAGES_MAX);
    for (size_t i = 0; i < count; i++) {
        json_t *message = json_array_get(messages, i);
        char at[32];
        (void)snprintf(at, sizeof at, "messages[%zu]", i);
        if (!json_is_object(message))
            return gw_refuse(problem, GW_BAD_VALUE, at, "a message must be an object");
        if (!role_check(json_object_get(message, "role"), at, problem)) return false;
        if (!content_check(json_object_get(message, "content"), at, problem)) return false;
        if (!name_check(json_object_get(message, "name"), at, problem)) return false;
        if (!members_check(message, at, problem)) return false;
    }
    return true;
}

static fx_span string_span(const json_t *string) {
    return (fx_span){(const uint8_t *)json_string_value(string), json_string_length(string)};
}

static void content_put(const json_t *content, fx_buf *out) {
    if (json_is_string(content)) fx_buf_put(out, string_span(content));
    for (size_t i = 0; i < json_array_size(content); i++)
        fx_buf_put(out, string_span(json_object_get(json_array_get(content, i), "text")));
}

size_t gw_messages_bytes(const json_t *messages) {
    fx_buf measure = {0};
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i);
        content_put(json_object_get(message, "content"), &measure);
        measure.len += json_string_length(json_object_get(message, "name"));
    }
    return measure.len;
}

/* The text of all parts. A string is shared. */
static json_t *content_flat(json_t *content) {
    fx_buf text = {0};
    if (json_is_string(content)) return json_incref(content);
    content_put(content, &text);
    fx_auto(uint8_t) bytes = fx_alloc(1, text.len + 1);
    if (!bytes) return NULL;
    text = (fx_buf){bytes, 0, text.len};
    content_put(content, &text);
    return json_stringn_nocheck((const char *)bytes, text.len);
}

static json_t *message_flat(const json_t *message) {
    json_t *out = json_object(), *name = json_object_get(message, "name");
    bool ok = out && json_object_set(out, "role", json_object_get(message, "role")) == 0 &&
              json_object_set_new(out, "content",
                                  content_flat(json_object_get(message, "content"))) == 0 &&
              (!json_is_string(name) || json_object_set(out, "name", name) == 0);
    if (ok) return out;
    json_decref(out);
    return NULL;
}

bool gw_messages_flat(const json_t *messages, json_t **out, struct gw_problem *problem) {
    json_t *flat = json_array();
    bool ok = flat != NULL;
    for (size_t i = 0; ok && i < json_array_size(messages); i++)
        ok = json_array_append_new(flat, message_flat(json_array_get(messages, i))) == 0;
    if (!ok) {
        json_decref(flat);
        return gw_refuse(problem, GW_UNAVAILABLE, NULL, "no memory for the messages");
    }
    *out = flat;
    return true;
}

bool gw_ids_check(const json_t *ids, const char *field, struct gw_problem *problem) {
    if (!json_is_array(ids) || !json_array_size(ids))
        return gw_refuse(problem, GW_BAD_VALUE, field, "%s must be a non-empty array of token ids",
                         field);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) > UINT32_MAX)
            return gw_refuse(problem, GW_BAD_VALUE, field, "%s[%zu] is no token id", field, i);
    }
    return true;
}

bool gw_prompt_check(json_t *prompt, json_t **out, struct gw_problem *problem) {
    json_t *first = json_array_get(prompt, 0);
    if (json_is_string(first) || json_is_array(first)) {
        if (json_array_size(prompt) > 1)
            return gw_refuse(problem, GW_UNSUPPORTED, "prompt", "only one prompt per request");
        prompt = first;
    }
    if (json_is_array(prompt) && json_array_size(prompt)) {
        if (!gw_ids_check(prompt, "prompt", problem)) return false;
    } else if (!json_is_string(prompt)) {
        return gw_refuse(problem, GW_BAD_VALUE, "prompt",
                         "prompt must be a string or a non-empty array of token ids");
    }
    *out = prompt;
    return true;
}

bool gw_variables_check(json_t *variables, const char *field, struct gw_problem *problem) {
    const char *name;
    json_t *value;
    if (!json_is_object(variables) || json_object_size(variables) > GW_VARIABLES_MAX)
        return gw_refuse(problem, GW_BAD_VALUE, field,
                         "%s must be an object of at most %d variables", field, GW_VARIABLES_MAX);
    json_object_foreach(variables, name, value) {
        if (!fx_template_owns(fx_span_str(name))) continue;
        return gw_refuse(problem, GW_BAD_VALUE, field, "%s: '%s' is a name of the template's own",
                         field, name);
    }
    return true;
}

bool gw_documents_check(const json_t *documents, const char *field, struct gw_problem *problem) {
    if (!json_is_array(documents) || json_array_size(documents) > GW_DOCUMENTS_MAX)
        return gw_refuse(problem, GW_BAD_VALUE, field, "%s must be an array of at most %d objects",
                         field, GW_DOCUMENTS_MAX);
    for (size_t i = 0; i < json_array_size(documents); i++)
        if (!json_is_object(json_array_get(documents, i)))
            return gw_refuse(problem, GW_BAD_VALUE, field, "%s[%zu] must be an object", field, i);
    return true;
}
