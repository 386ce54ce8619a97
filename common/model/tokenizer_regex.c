#define PCRE2_CODE_UNIT_WIDTH 8
#include "common/model/tokenizer_regex.h"
#include <pcre2.h>
#include "common/base/heap.h"

enum { DEPTH_MAX = 100000, HEAP_KIB_MAX = 65536, STACK_BYTES_FIRST = 32768 };

struct fx_regex {
    pcre2_code *code;
    bool jit;
    fx_scanner *known, *scanner; /* NULL: none; the second is the one in use */
};

struct fx_regex_work {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

void fx_regex_free(fx_regex *regex) {
    if (!regex) return;
    pcre2_code_free(regex->code);
    free(regex);
}

static FX_MUST bool compile(fx_span text, uint32_t options, fx_regex **out, fx_error *err) {
    int code;
    PCRE2_SIZE at;
    fx_auto(fx_regex) regex = fx_alloc(1, sizeof *regex);
    if (!regex) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a regex");
    regex->code = pcre2_compile(text.at, text.len, PCRE2_UTF | options, &code, &at, NULL);
    if (!regex->code) {
        uint8_t why[128];
        (void)pcre2_get_error_message(code, why, sizeof why);
        return fx_fail(err, FX_INVALID_ARGUMENT, "regex '%.*s': %.90s",
                       (int)(text.len < 80 ? text.len : 80), (const char *)text.at,
                       (const char *)why);
    }
    uint32_t empty = 0;
    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_MATCHEMPTY, &empty);
    if (empty || !text.len)
        return fx_fail(err, FX_UNIMPLEMENTED, "regex '%.*s': it matches an empty text",
                       (int)(text.len < 80 ? text.len : 80), (const char *)text.at);
    regex->jit = pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE) == 0;
    *out = fx_take(regex);
    return true;
}

bool fx_regex_new(fx_span pattern, fx_regex **out, fx_error *err) {
    fx_auto(uint8_t) bytes = fx_alloc(FX_REGEX_BYTES_MAX, 1);
    fx_buf text = {bytes, 0, FX_REGEX_BYTES_MAX};
    if (!bytes) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a regex");
    if (!fx_regex__translate(pattern, &text, err) ||
        !compile((fx_span){text.at, text.len}, PCRE2_UCP, out, err))
        return false;
    (*out)->known = (*out)->scanner = fx_regex__scanner(pattern);
    return true;
}

bool fx_regex_new_literal(fx_span text, fx_regex **out, fx_error *err) {
    return compile(text, PCRE2_LITERAL, out, err);
}

bool fx_regex_new_word_char(fx_regex **out, fx_error *err) {
    static const char *const newer[] = {"L", "M", "Nd", "Pc"};
    uint8_t bytes[4096];
    fx_buf text = {bytes, 0, sizeof bytes};
    fx_buf_put(&text, fx_span_str("[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}"));
    for (size_t i = 0; i < FX_COUNT(newer); i++)
        fx_regex__put_newer(&text, newer[i]);
    fx_buf_put(&text, fx_span_str("]"));
    FX_ASSERT(fx_buf_fits(&text));
    return compile((fx_span){text.at, text.len}, PCRE2_UCP, out, err);
}

void fx_regex_use_scanner(fx_regex *regex, bool on) {
    regex->scanner = on ? regex->known : NULL;
}

bool fx_regex_has_scanner(const fx_regex *regex) {
    return regex->scanner != NULL;
}

bool fx_regex_work_new(fx_regex_work **out, fx_error *err) {
    fx_auto(fx_regex_work) work = fx_alloc(1, sizeof *work);
    if (!work) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a match");
    work->data = pcre2_match_data_create(1, NULL);
    work->context = pcre2_match_context_create(NULL);
    work->stack = pcre2_jit_stack_create(STACK_BYTES_FIRST, FX_REGEX_STACK_BYTES, NULL);
    if (!work->data || !work->context || !work->stack)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a match");
    pcre2_jit_stack_assign(work->context, NULL, work->stack);
    (void)pcre2_set_match_limit(work->context, FX_REGEX_STEPS_MAX);
    (void)pcre2_set_depth_limit(work->context, DEPTH_MAX);
    (void)pcre2_set_heap_limit(work->context, HEAP_KIB_MAX);
    *out = fx_take(work);
    return true;
}

void fx_regex_work_free(fx_regex_work *work) {
    if (!work) return;
    pcre2_match_data_free(work->data);
    pcre2_match_context_free(work->context);
    pcre2_jit_stack_free(work->stack);
    free(work);
}

static FX_MUST bool find(const fx_regex *regex, fx_regex_work *work, fx_span text, size_t at,
                         struct fx_match *out, fx_error *err) {
    int rc = regex->jit ? pcre2_jit_match(regex->code, text.at, text.len, at, PCRE2_NO_UTF_CHECK,
                                          work->data, work->context)
                        : pcre2_match(regex->code, text.at, text.len, at, PCRE2_NO_UTF_CHECK,
                                      work->data, work->context);
    const PCRE2_SIZE *found = pcre2_get_ovector_pointer(work->data);
    *out = (struct fx_match){text.len, text.len};
    if (rc == PCRE2_ERROR_NOMATCH) return true;
    if (rc < 0)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED,
                       "the tokenizer's pattern takes too much work on this text (%d)", rc);
    *out = (struct fx_match){found[0], found[1]};
    return true;
}

bool fx_regex_find(const fx_regex *regex, fx_regex_work *work, fx_span text, size_t at,
                   struct fx_match *out, fx_error *err) {
    size_t len = regex->scanner ? regex->scanner(text, at) : 0;
    if (!len) return find(regex, work, text, at, out, err);
    *out = (struct fx_match){at, at + len};
    return true;
}
