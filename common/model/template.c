#include "common/model/jinja.h"
#include "common/base/heap.h"

typedef struct fx_jinja_token fx_jinja_token;
FX_DEFINE_AUTO(fx_jinja_token, free)

void fx_template_free(fx_template *template) {
    if (!template) return;
    free(template->code);
    free(template->constants);
    free(template->names);
    free(template->pool);
    free(template);
}

static FX_MUST bool add_builtins(struct fx_jinja_parser *parser) {
    static const char *const names[FX_JN_COUNT] = {
        [FX_JN_LOOP] = "loop",
        [FX_JN_MESSAGES] = "messages",
        [FX_JN_BOS_TOKEN] = "bos_token",
        [FX_JN_EOS_TOKEN] = "eos_token",
        [FX_JN_ADD_GENERATION_PROMPT] = "add_generation_prompt",
        [FX_JN_TOOLS] = "tools",
        [FX_JN_DOCUMENTS] = "documents",
    };
    for (size_t i = 0; i < FX_JN_COUNT; i++) {
        size_t number;
        if (!fx_jinja__name(parser, fx_span_str(names[i]), &number)) return false;
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
    return (struct fx_jinja_value){
        .kind = FX_JV_TEXT, .text = {.at = text.at, .len = text.len, .user = user}
    };
}

enum { MESSAGE_VALUES = 4 }; /* "role", role, "content", content */

/* The role is one of ours and so counts as template text: templates build tokens from it. */
static FX_MUST bool message_value(const struct fx_message *message, size_t index,
                                  struct fx_jinja_value *pairs, fx_error *err) {
    int shown = message->role.len < 32 ? (int)message->role.len : 32;
    if (!is_role(message->role))
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "messages[%zu]: role '%.*s' is none of system, developer, user, assistant, "
                       "tool, function",
                       index, shown, (const char *)message->role.at);
    pairs[0] = text_value(fx_span_str("role"), false);
    pairs[1] = text_value(message->role, false);
    pairs[2] = text_value(fx_span_str("content"), false);
    pairs[3] = text_value(message->content, true);
    return true;
}

static FX_MUST bool messages_value(const struct fx_template_input *input, fx_arena *arena,
                                   struct fx_jinja_value *out, fx_error *err) {
    size_t count = input->count;
    if (count > FX_TEMPLATE_MESSAGES_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%zu messages, at most %d", count,
                       FX_TEMPLATE_MESSAGES_MAX);
    struct fx_jinja_value *items = fx_arena_array(arena, count, sizeof *items);
    struct fx_jinja_value *pairs = fx_arena_array(arena, count * MESSAGE_VALUES, sizeof *pairs);
    if (!items || !pairs)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "chat template: arena is full");
    for (size_t i = 0; i < count; i++, pairs += MESSAGE_VALUES) {
        if (!message_value(&input->messages[i], i, pairs, err)) return false;
        items[i] = (struct fx_jinja_value){
            .kind = FX_JV_DICT, .list = {pairs, 2}
        };
    }
    *out = (struct fx_jinja_value){
        .kind = FX_JV_LIST, .list = {items, count}
    };
    return true;
}

bool fx_template_render(const fx_template *template, const struct fx_template_input *input,
                        fx_arena *arena, struct fx_segments *out, fx_error *err) {
    struct fx_jinja_value values[FX_JN_COUNT] = {
        [FX_JN_BOS_TOKEN] = text_value(input->bos_token, false),
        [FX_JN_EOS_TOKEN] = text_value(input->eos_token, false),
        [FX_JN_ADD_GENERATION_PROMPT] = {.kind = FX_JV_BOOL,
                                         .boolean = input->add_generation_prompt},
        [FX_JN_TOOLS] = {.kind = FX_JV_NONE                 },
        [FX_JN_DOCUMENTS] = {.kind = FX_JV_NONE},
    };
    const bool bound[FX_JN_COUNT] = {
        [FX_JN_MESSAGES] = true,
        [FX_JN_BOS_TOKEN] = input->bos_token.len != 0,
        [FX_JN_EOS_TOKEN] = input->eos_token.len != 0,
        [FX_JN_ADD_GENERATION_PROMPT] = true,
        [FX_JN_TOOLS] = true,
        [FX_JN_DOCUMENTS] = true,
    };
    if (!messages_value(input, arena, &values[FX_JN_MESSAGES], err)) return false;
    return fx_jinja__run(template, values, bound, arena, out, err);
}
