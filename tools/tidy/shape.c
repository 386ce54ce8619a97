/* Rules "size", "comment" and "header": how a file looks. */
#include "tools/tidy/tidy.h"
#include <string.h>

enum { FILE_LINES_MAX = 800, FUNCTION_LINES_MAX = 70 };

static void check_file_size(struct fx_tree *tree, const struct fx_source *file) {
    size_t lines = fx_line_of(file->text, file->text + file->len);
    if (file->len && file->text[file->len - 1] == '\n') lines--;
    if (lines > FILE_LINES_MAX)
        fx_find(tree, file, lines, "size", "%zu lines; at most %d a file", lines, FILE_LINES_MAX);
}

/* Whether the '{' at `open` begins a function's body: the last thing before it is a ')'. */
static bool begins_body(const char *code, const char *open) {
    const char *at = open;
    while (at > code && strchr(" \t\n", at[-1]))
        at--;
    return at > code && at[-1] == ')';
}

static void check_functions(struct fx_tree *tree, const struct fx_source *file) {
    size_t line = 1, depth = 0, body_line = 0;
    for (const char *at = file->code; *at; at++) {
        if (*at == '\n') line++;
        if (*at == '{' && depth++ == 0) body_line = begins_body(file->code, at) ? line : 0;
        if (*at != '}' || depth == 0 || --depth != 0 || !body_line) continue;
        size_t lines = line - body_line + 1;
        if (lines > FUNCTION_LINES_MAX)
            fx_find(tree, file, body_line, "size", "a function of %zu lines; at most %d", lines,
                    FUNCTION_LINES_MAX);
    }
}

static void check_comments(struct fx_tree *tree, const struct fx_source *file) {
    for (const char *at = strstr(file->code, "//"); at; at = strstr(at + 2, "//"))
        fx_find(tree, file, fx_line_of(file->code, at), "comment", "a line comment: write /* */");
}

static void check_header(struct fx_tree *tree, const struct fx_source *file) {
    static const char once[] = "#pragma once\n";
    const char *at = file->bare + strspn(file->bare, " \t\n");
    if (strncmp(at, once, strlen(once)) != 0)
        fx_find(tree, file, 1, "header", "begins without #pragma once");
}

void fx_rule_shape(struct fx_tree *tree) {
    for (size_t i = 0; i < tree->count; i++) {
        const struct fx_source *file = &tree->files[i];
        if (!fx_ends_with(file->path, ".md")) check_file_size(tree, file);
        if (!fx_is_c(file)) continue;
        check_functions(tree, file);
        check_comments(tree, file);
        if (fx_ends_with(file->path, ".h")) check_header(tree, file);
    }
}
