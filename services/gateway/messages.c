#include "services/gateway/messages.h"
#include <stdio.h>
#include <string.h>

static const char *const roles[] = {"system", "developer", "user", "assistant"};

/* Members of a message that ask for nothing when they are there. */
static const char *const harmless[] = {"role", "content", "name"};

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

static bool members_check(json_t *message, const char *at, struct gw_problem *problem) {
    const char *key;
    json_t *value;
    json_object_foreach(message, key, value) {
        bool known = json_is_null(value) || (json_is_array(value) && !json_array_size(value));
        for (size_t i = 0; i < FX_COUNT(harmless); i++)
            known |= strcmp(key, harmless[i]) == 0;
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
        if (!members_check(message, at, problem)) return false;
    }
    return true;
}

static fx_span string_span(const json_t *string) {
    return (fx_span){(const uint8_t *)json_string_value(string), json_string_length(string)};
}

size_t gw_messages_bytes(const json_t *messages) {
    size_t bytes = 0;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *content = json_object_get(json_array_get(messages, i), "content");
        bytes += json_string_length(content);
        for (size_t p = 0; p < json_array_size(content); p++)
            bytes += json_string_length(json_object_get(json_array_get(content, p), "text"));
    }
    return bytes;
}

static bool content_build(const json_t *content, fx_arena *arena, fx_span *out) {
    fx_buf buf = {0};
    if (json_is_string(content)) {
        *out = string_span(content);
        return true;
    }
    for (int pass = 0; pass < 2; pass++) { /* measure, then write */
        buf.len = 0;
        for (size_t i = 0; i < json_array_size(content); i++)
            fx_buf_put(&buf, string_span(json_object_get(json_array_get(content, i), "text")));
        if (pass == 0) {
            buf.cap = buf.len;
            buf.at = fx_arena_alloc(arena, buf.len);
            if (!buf.at) return false;
        }
    }
    *out = (fx_span){buf.at, buf.len};
    return true;
}

bool gw_messages_build(const json_t *messages, fx_arena *arena, struct fx_message **out,
                       struct gw_problem *problem) {
    size_t count = json_array_size(messages);
    struct fx_message *built = fx_arena_array(arena, count, sizeof *built);
    for (size_t i = 0; built && i < count; i++) {
        const json_t *message = json_array_get(messages, i);
        built[i].role = string_span(json_object_get(message, "role"));
        if (!content_build(json_object_get(message, "content"), arena, &built[i].content))
            built = NULL;
    }
    if (!built) return gw_refuse(problem, GW_UNAVAILABLE, NULL, "no memory for the messages");
    *out = built;
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
