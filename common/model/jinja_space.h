#pragma once
#include "common/model/jinja.h"

/** The variables of a namespace() in the order they came. */
struct fx_jinja_namespace {
    struct fx_jinja_value *pairs; /* name, value, name, ... */
    size_t count, cap;
};
