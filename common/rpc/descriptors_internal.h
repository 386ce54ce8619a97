#pragma once
#include "common/base/error.h"
#include "common/base/span.h"

/** The embedded FileDescriptorSet, cut into its files; all spans point into the program. */
struct fx_descriptors;
struct fx_descriptor_file {
    fx_span name, package, bytes;
};

/** @own caller, fx_descriptors__free @err DATA_LOSS, RESOURCE_EXHAUSTED */
FX_MUST bool fx_descriptors__open(struct fx_descriptors **out, fx_error *err);
void fx_descriptors__free(struct fx_descriptors *descriptors);
/** NULL when there is none. */
const struct fx_descriptor_file *fx_descriptors__by_name(const struct fx_descriptors *descriptors,
                                                         fx_span name);
enum { FX_IMPORTS_MAX = 16 };
/** `file` and all that it imports, directly or not, `file` first; how many, at most
 *  FX_IMPORTS_MAX. */
size_t fx_descriptors__with_imports(const struct fx_descriptors *descriptors,
                                    const struct fx_descriptor_file *file,
                                    const struct fx_descriptor_file *out[FX_IMPORTS_MAX]);
/** The file that declares a message, enum, service, or one of their members, by its full name. */
const struct fx_descriptor_file *fx_descriptors__by_symbol(const struct fx_descriptors *descriptors,
                                                           fx_span symbol);
