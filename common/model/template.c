#include "common/model/jinja_code.h"
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/model/template_json.h"

typedef struct fx_jinja_token fx_jinja_token;
FX_DEFINE_AUTO(fx_jinja_token, free)

void fx_template_free(fx_template *template) {
    if (!template) return;
    free(template->code);
    free(template->constants);
    free(template->names);
    free(template->macros);
    free(template->pool);
    free(template);
}

static const char *builtin_name(size_t i) {
    static const char *const names[FX_JN_FUNCTIONS] = {
        [FX_JN_LOOP] = "loop",           [FX_JN_SELF] = "self",
        [FX_JN_MESSAGES] = "messages",   [FX_JN_BOS_TOKEN] = "bos_token",
        [FX_JN_EOS_TOKEN] = "eos_token", [FX_JN_ADD_GENERATION_PROMPT] = "add_generation_prompt",
        [FX_JN_TOOLS] = "tools",         [FX_JN_DOCUMENTS] = "documents",
    };
    return i < FX_JN_FUNCTIONS ? names[i] : fx_jinja__builtins[i - FX_JN_FUNCTIONS].name;
}

static FX_MUST bool add_builtins(struct fx_jinja_parser *parser) {
    for (size_t i = 0; i < FX_JN_COUNT; i++) {
        size_t number;
        if (!fx_jinja__name(parser, fx_span_str(builtin_name(i)), &number)) return false;
        FX_ASSERT(number == i);
    }
    return true;
}

static FX_MUST bool parse(fx_template *template, const struct fx_jinja_token *tokens,
                          fx_error *err) {
    struct fx_jinja_parser parser = {.template = template, .token = tokens, .err = err};
    return add_builtins(&parser) && fx_jinja__parse(&parser);
}

bool fx_template_compile(fx_span source, fx_template **out, fx_error *err) {
    struct fx_jinja_tokens tokens = {0};
    if (source.len > FX_TEMPLATE_SOURCE_BYTES_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "chat template: %zu bytes, at most %d", source.len,
                       FX_TEMPLATE_SOURCE_BYTES_MAX);
    fx_auto(fx_template) template = fx_alloc(1, sizeof *template);
    if (template) {
        template->pool = fx_alloc(source.len, 1);
        template->names = fx_alloc(FX_JINJA_NAMES_MAX, sizeof *template->names);
    }
    if (!template || !template->pool || !template->names)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a template");
    bool lexed = fx_jinja__lex(source, template->pool, &tokens, err);
    fx_auto(fx_jinja_token) owned = tokens.at;
    if (!lexed || !parse(template, owned, err)) return fx_wrap(err, "chat template");
    *out = fx_take(template);
    return true;
}

static bool is_role(fx_span role) {
    static const char *const roles[] = {"system",    "developer", "user",
                                        "assistant", "tool",      "function"};
    for (size_t i = 0; i < FX_COUNT(roles); i++)
        if (fx_span_eq_str(role, roles[i])) return true;
    return false;
}

static struct fx_jinja_value text_value(fx_span text, bool user) {
    if (!text.len) text = fx_span_str("");
    return fx_jinja__text_value(
        (struct fx_jinja_text){.at = text.at, .len = text.len, .user = user});
}

static FX_MUST bool check_role(fx_span role, size_t index, fx_error *err) {
    int shown = role.len < 32 ? (int)role.len : 32;
    if (is_role(role)) return true;
    return fx_fail(err, FX_INVALID_ARGUMENT,
                   "messages[%zu]: role '%.*s' is none of system, developer, user, assistant, "
                   "tool, function",
                   index, shown, (const char *)role.at);
}

static FX_MUST bool check_count(size_t count, fx_error *err) {
    return count <= FX_TEMPLATE_MESSAGES_MAX ||
           fx_fail(err, FX_INVALID_ARGUMENT, "%zu messages, at most %d", count,
                   FX_TEMPLATE_MESSAGES_MAX);
}

/* The role is one of ours and so counts as template text: templates build tokens from it. */
static FX_MUST bool own_role(struct fx_jinja_value *message, size_t index, fx_error *err) {
    struct fx_jinja_text role = {0};
    if (message->kind != FX_JV_DICT)
        return fx_fail(err, FX_INVALID_ARGUMENT, "messages[%zu] is no object", index);
    for (size_t i = 0; i < message->list.count; i++) {
        struct fx_jinja_value *pair = (struct fx_jinja_value *)(uintptr_t)&message->list.at[2 * i];
        if (pair[1].kind != FX_JV_TEXT || !fx_span_eq_str(fx_jinja__span(pair[0].text), "role"))
            continue;
        pair[1].text.user = false;
        role = pair[1].text;
    }
    return check_role(role.at ? fx_jinja__span(role) : fx_span_str(""), index, err);
}

static FX_MUST bool objects_value(const struct json_t *objects, fx_arena *arena,
                                  struct fx_jinja_value *out, fx_error *err) {
    if (!fx_template__json(objects, arena, out, err)) return fx_wrap(err, "messages");
    if (out->kind != FX_JV_LIST)
        return fx_fail(err, FX_INVALID_ARGUMENT, "messages must be a list");
    if (!check_count(out->list.count, err)) return false;
    for (size_t i = 0; i < out->list.count; i++)
        if (!own_role((struct fx_jinja_value *)(uintptr_t)&out->list.at[i], i, err)) return false;
    return true;
}

enum { MESSAGE_VALUES = 4 }; /* "role", role, "content", content */

static struct fx_jinja_value message_value(const struct fx_message *message,
                                           struct fx_jinja_value *pairs) {
    pairs[0] = text_value(fx_span_str("role"), false);
    pairs[1] = text_value(message->role, false);
    pairs[2] = text_value(fx_span_str("content"), false);
    pairs[3] = text_value(message->content, true);
    struct fx_jinja_value value = fx_jinja__list(pairs, MESSAGE_VALUES / 2);
    value.kind = FX_JV_DICT;
    return value;
}

static FX_MUST bool messages_value(const struct fx_template_input *input, fx_arena *arena,
                                   struct fx_jinja_value *out, fx_error *err) {
    size_t count = input->count;
    if (input->objects) return objects_value(input->objects, arena, out, err);
    if (!check_count(count, err)) return false;
    struct fx_jinja_value *items = fx_arena_array(arena, count, sizeof *items);
    struct fx_jinja_value *pairs = fx_arena_array(arena, count * MESSAGE_VALUES, sizeof *pairs);
    if (!items || !pairs)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "chat template: arena is full");
    for (size_t i = 0; i < count; i++, pairs += MESSAGE_VALUES) {
        if (!check_role(input->messages[i].role, i, err)) return false;
        items[i] = message_value(&input->messages[i], pairs);
    }
    *out = fx_jinja__list(items, count);
    return true;
}

static FX_MUST bool list_value(const struct json_t *list, const char *name, fx_arena *arena,
                               struct fx_jinja_value *out, fx_error *err) {
    out->kind = FX_JV_NONE;
    if (!list) return true;
    if (!fx_template__json(list, arena, out, err)) return fx_wrap(err, "%s", name);
    return out->kind == FX_JV_LIST || out->kind == FX_JV_NONE ||
           fx_fail(err, FX_INVALID_ARGUMENT, "%s must be a list", name);
}

bool fx_template_owns(fx_span name) {
    for (size_t i = 0; i < FX_JN_COUNT; i++)
        if (fx_span_eq_str(name, builtin_name(i))) return true;
    return false;
}

static FX_MUST bool variables_value(const struct json_t *variables, fx_arena *arena,
                                    struct fx_jinja_value *out, fx_error *err) {
    *out = fx_jinja__list(NULL, 0);
    out->kind = FX_JV_DICT;
    if (!variables) return true;
    if (!fx_template__json(variables, arena, out, err)) return fx_wrap(err, "variables");
    if (out->kind != FX_JV_DICT)
        return fx_fail(err, FX_INVALID_ARGUMENT, "variables must be an object");
    for (size_t i = 0; i < out->list.count; i++) {
        fx_span name = fx_jinja__span(out->list.at[2 * i].text);
        if (fx_template_owns(name))
            return fx_fail(err, FX_INVALID_ARGUMENT, "the variable '%.*s' can't be given",
                           (int)name.len, (const char *)name.at);
    }
    return true;
}

static void token_value(fx_span token, struct fx_jinja_value *out) {
    *out = text_value(token, false);
    if (!token.len) out->kind = FX_JV_ABSENT;
}

bool fx_template_render(const fx_template *template, const struct fx_template_input *input,
                        fx_arena *arena, struct fx_segments *out, fx_error *err) {
    struct fx_jinja_value values[FX_JN_COUNT] =
        {[FX_JN_LOOP] = {.kind = FX_JV_ABSENT}, [FX_JN_SELF] = {.kind = FX_JV_ABSENT}},
                          extra;
    int64_t now_s = input->now_s ? input->now_s : (int64_t)(fx_wall_ms() / 1000);
    token_value(input->bos_token, &values[FX_JN_BOS_TOKEN]);
    token_value(input->eos_token, &values[FX_JN_EOS_TOKEN]);
    values[FX_JN_ADD_GENERATION_PROMPT] = fx_jinja__bool(input->add_generation_prompt);
    for (size_t i = FX_JN_FUNCTIONS; i < FX_JN_COUNT; i++) {
        values[i].kind = FX_JV_FUNCTION;
        values[i].function = &fx_jinja__builtins[i - FX_JN_FUNCTIONS];
    }
    return messages_value(input, arena, &values[FX_JN_MESSAGES], err) &&
           list_value(input->tools, "tools", arena, &values[FX_JN_TOOLS], err) &&
           list_value(input->documents, "documents", arena, &values[FX_JN_DOCUMENTS], err) &&
           variables_value(input->variables, arena, &extra, err) &&
           fx_jinja__run(template, values, &extra, now_s, arena, out, err);
}
