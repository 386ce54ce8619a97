#pragma once
#include "common/model/jinja.h"

/** value.a.b.0 for attribute='a.b.0' (or a number): as Jinja's make_attrgetter(). Without an
 *  attribute (ABSENT, NONE) the value itself; `fallback` (or ABSENT) where it is undefined. */
FX_MUST bool fx_jinja__path(struct fx_jinja_run *run, const struct fx_jinja_value *value,
                            const struct fx_jinja_value *attribute,
                            const struct fx_jinja_value *fallback, struct fx_jinja_value *out);
/** The same for each of `items`, a LIST; strings in lower case unless `case_sensitive`. */
FX_MUST bool fx_jinja__paths(struct fx_jinja_run *run, const struct fx_jinja_value *items,
                             const struct fx_jinja_value *attribute, bool case_sensitive,
                             struct fx_jinja_value **out);
/** A LIST of (key, value) of a DICT. */
FX_MUST bool fx_jinja__pairs(struct fx_jinja_run *run, const struct fx_jinja_value *dict,
                             struct fx_jinja_value *out);
/** Indices of `keys` in ascending order (descending where `reverse`), equal ones as they stood. */
FX_MUST bool fx_jinja__sort(struct fx_jinja_run *run, const struct fx_jinja_value *keys,
                            size_t count, bool reverse, size_t **out);
