/* Rule "numerics": bits are the same on every machine. The C library's transcendental functions
 * have variants by processor, and a contracted a*b+c rounds once where another compiler rounds
 * twice. */
#include "tools/tidy/tidy.h"
#include "common/base/auto.h"
#include <stdio.h>
#include <string.h>

static const char *const exact_folders[] = {"kernels/ref", "kernels/cpu", "engine"};

static const char *const libm[] = {
    "exp",   "exp2",  "exp10",  "expm1", "log",  "log2",   "log10",  "log1p", "pow",   "sin",
    "cos",   "tan",   "sincos", "asin",  "acos", "atan",   "atan2",  "sinh",  "cosh",  "tanh",
    "asinh", "acosh", "atanh",  "erf",   "erfc", "tgamma", "lgamma", "cbrt",  "hypot",
};

static const char *const banned_flags[] = {"-ffast-math", "-Ofast", "-funsafe-math-optimizations",
                                           "-fassociative-math", "-ffp-contract=fast"};

static void check_word(struct fx_tree *tree, const struct fx_source *file, const char *name) {
    for (const char *at = fx_next_word(file->code, name); at; at = fx_next_word(at + 1, name))
        if (at[strlen(name) + strspn(at + strlen(name), " \t")] == '(')
            fx_find(tree, file, fx_line_of(file->code, at), "numerics",
                    "%s() of the C library differs by processor: use our own", name);
}

static void check_libm(struct fx_tree *tree, const struct fx_source *file) {
    static const char *const endings[] = {"", "f", "l"};
    for (size_t i = 0; i < FX_COUNT(libm); i++)
        for (size_t ending = 0; ending < FX_COUNT(endings); ending++) {
            char name[32];
            (void)snprintf(name, sizeof name, "%s%s", libm[i], endings[ending]);
            check_word(tree, file, name);
        }
}

static void check_flags(struct fx_tree *tree, const struct fx_source *file) {
    for (size_t i = 0; i < FX_COUNT(banned_flags); i++) {
        const char *at = strstr(file->text, banned_flags[i]);
        if (at)
            fx_find(tree, file, fx_line_of(file->text, at), "numerics", "%s changes results",
                    banned_flags[i]);
    }
    if (strcmp(file->path, "cmake/FxTargets.cmake") == 0 &&
        !strstr(file->text, "-ffp-contract=off"))
        fx_find(tree, file, 1, "numerics", "fx_flags lacks -ffp-contract=off");
}

void fx_rule_numerics(struct fx_tree *tree) {
    for (size_t i = 0; i < tree->count; i++) {
        const struct fx_source *file = &tree->files[i];
        for (size_t folder = 0; folder < FX_COUNT(exact_folders); folder++)
            if (fx_is_c(file) && fx_under(file->path, exact_folders[folder]))
                check_libm(tree, file);
        if (fx_ends_with(file->path, ".cmake") || fx_ends_with(file->path, "CMakeLists.txt"))
            check_flags(tree, file);
    }
}
