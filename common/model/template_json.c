#include "common/model/template_json.h"
#include <jansson.h>

/* A list or mapping that waits to be filled. */
struct todo {
    const json_t *json;
    struct fx_jinja_value *to; /* its elements: [count], or key, value, key, ... */
    struct todo *next;
};

struct filler {
    fx_arena *arena;
    struct todo *todo;
    fx_error *err;
};

static FX_MUST bool fill(struct filler *filler, const json_t *json, struct fx_jinja_value *out) {
    bool dict = json_is_object(json);
    size_t count = dict ? json_object_size(json) : json_array_size(json);
    struct todo *todo = fx_arena_alloc(filler->arena, sizeof *todo);
    struct fx_jinja_value *items =
        fx_arena_array(filler->arena, dict ? 2 * count : count, sizeof *items);
    if (!todo || !items)
        return fx_fail(filler->err, FX_RESOURCE_EXHAUSTED, "chat template: arena is full");
    *todo = (struct todo){json, items, filler->todo};
    filler->todo = todo;
    *out = fx_jinja__list(items, count);
    if (dict) out->kind = FX_JV_DICT;
    return true;
}

static struct fx_jinja_value user_text(const char *text, size_t len) {
    return fx_jinja__text_value(
        (struct fx_jinja_text){.at = (const uint8_t *)text, .len = len, .user = true});
}

static FX_MUST bool convert(struct filler *filler, const json_t *json, struct fx_jinja_value *out) {
    switch (json_typeof(json)) {
    case JSON_OBJECT:
    case JSON_ARRAY: return fill(filler, json, out);
    case JSON_STRING: *out = user_text(json_string_value(json), json_string_length(json)); break;
    case JSON_INTEGER: *out = fx_jinja__integer(json_integer_value(json)); break;
    case JSON_REAL:
        *out = (struct fx_jinja_value){.kind = FX_JV_FLOAT, .real = json_real_value(json)};
        break;
    case JSON_TRUE: *out = fx_jinja__bool(true); break;
    case JSON_FALSE: *out = fx_jinja__bool(false); break;
    case JSON_NULL: *out = (struct fx_jinja_value){.kind = FX_JV_NONE}; break;
    }
    return true;
}

static FX_MUST bool fill_list(struct filler *filler, const struct todo *todo) {
    struct fx_jinja_value *to = todo->to;
    for (size_t i = 0; i < json_array_size(todo->json); i++)
        if (!convert(filler, json_array_get(todo->json, i), to++)) return false;
    return true;
}

static FX_MUST bool fill_dict(struct filler *filler, const struct todo *todo) {
    json_t *object = (json_t *)(uintptr_t)todo->json; /* its iterators want one; none changes it */
    struct fx_jinja_value *to = todo->to;
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        *to++ = user_text(key, strlen(key));
        if (!convert(filler, json_object_iter_value(at), to++)) return false;
    }
    return true;
}

bool fx_template__json(const struct json_t *json, fx_arena *arena, struct fx_jinja_value *out,
                       fx_error *err) {
    struct filler filler = {.arena = arena, .err = err};
    if (!convert(&filler, json, out)) return false;
    while (filler.todo) {
        const struct todo *todo = filler.todo;
        filler.todo = todo->next;
        if (!(json_is_object(todo->json) ? fill_dict(&filler, todo) : fill_list(&filler, todo)))
            return false;
    }
    return true;
}
