/* Rules "dead" (a source that no build file lists) and "docs" (a folder that the map forgot). */
#include "tools/tidy/tidy.h"
#include "common/base/auto.h"
#include <stdio.h>
#include <string.h>

static bool is_build_file(const struct fx_source *file) {
    return fx_ends_with(file->path, ".cmake") || fx_ends_with(file->path, "CMakeLists.txt");
}

static bool is_name_char(char c) {
    return fx_is_identifier_char(c) || c == '.' || c == '-';
}

/* Whether `name` stands in `text` as a whole file name, at the end of a path or alone. */
static bool mentions(const char *text, const char *name) {
    size_t len = strlen(name);
    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name))
        if ((at == text || !is_name_char(at[-1])) && !is_name_char(at[len])) return true;
    return false;
}

/* Build files list tests either by name, or by the x of test_x.c in a loop over test_${name}. */
static bool lists(const struct fx_source *build, const char *name) {
    char stem[FX_TIDY_PATH_BYTES];
    if (mentions(build->text, name)) return true;
    if (strncmp(name, "test_", 5) != 0 || !strstr(build->text, "/test_${")) return false;
    (void)snprintf(stem, sizeof stem, "%.*s", (int)(strlen(name) - strlen("test_.c")), name + 5);
    return mentions(build->text, stem);
}

/* A build file speaks for its own folder and those below. */
static bool speaks_for(const struct fx_source *build, const char *path) {
    const char *slash = strrchr(build->path, '/');
    if (!slash || fx_under(build->path, "cmake")) return true;
    return strncmp(build->path, path, (size_t)(slash - build->path) + 1) == 0;
}

static bool is_listed(const struct fx_tree *tree, const struct fx_source *file) {
    const char *slash = strrchr(file->path, '/');
    const char *name = slash ? slash + 1 : file->path;
    for (size_t i = 0; i < tree->count; i++)
        if (is_build_file(&tree->files[i]) && speaks_for(&tree->files[i], file->path) &&
            lists(&tree->files[i], name))
            return true;
    return false;
}

void fx_rule_listed(struct fx_tree *tree) {
    for (size_t i = 0; i < tree->count; i++)
        if (fx_ends_with(tree->files[i].path, ".c") && !is_listed(tree, &tree->files[i]))
            fx_find(tree, &tree->files[i], 1, "dead", "no CMakeLists.txt or tests.cmake lists it");
}

/* The folder of `path` that the map must name: its first part, or two under these. */
static bool mapped_folder(const char *path, char *out, size_t size) {
    static const char *const two_deep[] = {"services", "common", "kernels"};
    size_t len = strcspn(path, "/");
    if (path[len] == '\0' || path[0] == '.') return false;
    for (size_t i = 0; i < FX_COUNT(two_deep); i++) {
        const char *rest = path + len + 1;
        if (fx_under(path, two_deep[i]) && strchr(rest, '/')) len += 1 + strcspn(rest, "/");
    }
    (void)snprintf(out, size, "%.*s/", (int)len, path);
    return true;
}

static const struct fx_source *find_map(const struct fx_tree *tree) {
    for (size_t i = 0; i < tree->count; i++)
        if (strcmp(tree->files[i].path, "docs/ARCHITECTURE.md") == 0) return &tree->files[i];
    return NULL;
}

void fx_rule_docs(struct fx_tree *tree) {
    char folder[FX_TIDY_PATH_BYTES], last[FX_TIDY_PATH_BYTES] = "";
    const struct fx_source *map = find_map(tree);
    for (size_t i = 0; i < tree->count; i++) {
        const struct fx_source *file = &tree->files[i];
        if (!mapped_folder(file->path, folder, sizeof folder) || strcmp(folder, last) == 0)
            continue;
        (void)snprintf(last, sizeof last, "%s", folder);
        if (!map || !strstr(map->text, folder))
            fx_find(tree, map ? map : file, 1, "docs", "docs/ARCHITECTURE.md does not name %s",
                    folder);
    }
}
