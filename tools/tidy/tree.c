#include "tools/tidy/tidy.h"
#include "common/base/heap.h"
#include <fts.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_BYTES_MAX = 8 << 20 };

/* Folders whose contents are not ours to judge: built, downloaded, or broken on purpose. */
static const char *const skipped[] = {"build",      ".git",          ".fractal", "node_modules",
                                      "tests/tidy", "tests/goldens", "models"};
/* What rules read. */
static const char *const suffixes[] = {".c",     ".h",     ".lua", ".py",           ".sh",
                                       ".cmake", ".proto", ".md",  "CMakeLists.txt"};

bool fx_under(const char *path, const char *prefix) {
    size_t len = strlen(prefix);
    return strncmp(path, prefix, len) == 0 &&
           (path[len] == '\0' || path[len] == '/' || (len && prefix[len - 1] == '/'));
}

bool fx_ends_with(const char *path, const char *suffix) {
    size_t len = strlen(path), tail = strlen(suffix);
    return len >= tail && strcmp(path + len - tail, suffix) == 0;
}

bool fx_is_c(const struct fx_source *file) {
    return fx_ends_with(file->path, ".c") || fx_ends_with(file->path, ".h");
}

bool fx_is_identifier_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

const char *fx_next_word(const char *from, const char *word) {
    size_t len = strlen(word);
    for (const char *at = strstr(from, word); at; at = strstr(at + 1, word))
        if ((at == from || !fx_is_identifier_char(at[-1])) && !fx_is_identifier_char(at[len]))
            return at;
    return NULL;
}

size_t fx_line_of(const char *text, const char *at) {
    size_t line = 1;
    for (const char *c = text; c < at; c++)
        if (*c == '\n') line++;
    return line;
}

void fx_find(struct fx_tree *tree, const struct fx_source *file, size_t line, const char *rule,
             const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    (void)printf("%s:%zu: %s: ", file->path, line, rule);
    (void)vprintf(fmt, args);
    (void)printf("\n");
    va_end(args);
    tree->findings++;
}

static bool is_read(const char *path) {
    if (strcmp(path, "fractal") == 0 || strcmp(path, ".ci/run") == 0) return true;
    for (size_t i = 0; i < FX_COUNT(suffixes); i++)
        if (fx_ends_with(path, suffixes[i])) return true;
    return false;
}

static bool is_skipped(const char *path) {
    if (fx_ends_with(path, "/node_modules")) return true;
    for (size_t i = 0; i < FX_COUNT(skipped); i++)
        if (strcmp(path, skipped[i]) == 0) return true;
    return false;
}

static bool read_texts(struct fx_source *file, const char *path, size_t size) {
    fx_auto(FILE) in = fopen(path, "rbe");
    file->text = fx_alloc(size + 1, 1);
    file->bare = fx_alloc(size + 1, 1);
    file->code = fx_alloc(size + 1, 1);
    if (!in || !file->text || !file->bare || !file->code) return false;
    file->len = fread(file->text, 1, size, in);
    if (fx_is_c(file))
        fx_lex(file->text, file->len, file->bare, file->code);
    else
        memcpy(file->bare, file->text, file->len);
    return true;
}

static bool add_file(struct fx_tree *tree, const FTSENT *entry, const char *path) {
    if (tree->count == FX_TIDY_FILES_MAX || strlen(path) >= FX_TIDY_PATH_BYTES ||
        entry->fts_statp->st_size > FILE_BYTES_MAX) {
        (void)fprintf(stderr, "tidy: '%s' is too large, or one file too many\n", path);
        return false;
    }
    struct fx_source *file = &tree->files[tree->count++];
    (void)snprintf(file->path, sizeof file->path, "%s", path);
    if (read_texts(file, entry->fts_accpath, (size_t)entry->fts_statp->st_size)) return true;
    perror(path);
    return false;
}

static bool visit(struct fx_tree *tree, FTS *walk, FTSENT *entry, size_t root_len) {
    const char *path = entry->fts_path + root_len;
    while (*path == '/')
        path++;
    if (entry->fts_info == FTS_D && is_skipped(path)) (void)fts_set(walk, entry, FTS_SKIP);
    if (entry->fts_info == FTS_F && is_read(path)) return add_file(tree, entry, path);
    return true;
}

static int by_name(const FTSENT **a, const FTSENT **b) {
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

bool fx_tree_load(struct fx_tree *tree, const char *root) {
    *tree = (struct fx_tree){.files = fx_alloc(FX_TIDY_FILES_MAX, sizeof *tree->files)};
    char *roots[] = {(char *)(size_t)root, NULL};
    FTS *walk = tree->files ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name) : NULL;
    bool ok = walk != NULL;
    for (FTSENT *entry; ok && (entry = fts_read(walk));)
        ok = visit(tree, walk, entry, strlen(root));
    if (walk) (void)fts_close(walk);
    if (ok && tree->count == 0) (void)fprintf(stderr, "tidy: nothing to read in '%s'\n", root);
    return ok && tree->count > 0;
}

void fx_tree_free(struct fx_tree *tree) {
    for (size_t i = 0; i < tree->count; i++) {
        free(tree->files[i].text);
        free(tree->files[i].bare);
        free(tree->files[i].code);
    }
    free(tree->files);
    *tree = (struct fx_tree){0};
}
