#pragma once
#include "common/model/jinja.h"

/* Numbers: BOOL, INT and FLOAT are all of them. */

static inline int64_t fx_jinja__as_integer(const struct fx_jinja_value *value) {
    return value->kind == FX_JV_BOOL ? value->boolean : value->integer;
}

static inline double fx_jinja__as_real(const struct fx_jinja_value *value) {
    return value->kind == FX_JV_FLOAT ? value->real : (double)fx_jinja__as_integer(value);
}

static inline bool fx_jinja__is_real(const struct fx_jinja_value *a,
                                     const struct fx_jinja_value *b) {
    return a->kind == FX_JV_FLOAT || b->kind == FX_JV_FLOAT;
}

/** INVALID_ARGUMENT: `what` of these two, or that one is undefined. */
FX_MUST bool fx_jinja__type_error(struct fx_jinja_run *run, const char *what,
                                  const struct fx_jinja_value *a, const struct fx_jinja_value *b);
FX_MUST bool fx_jinja__contains(struct fx_jinja_run *run, const struct fx_jinja_value *needle,
                                const struct fx_jinja_value *hay, bool *out);
