#pragma once
#include <stdbool.h>
#include <stddef.h>

enum { FX_TIDY_FILES_MAX = 8192, FX_TIDY_PATH_BYTES = 512 };

/** One file of the checked tree. `text` as it is; `bare` without comments; `code` without comments,
 *  string contents and preprocessor lines, but with the two slashes of a line comment: all three
 *  have the same length and lines. */
struct fx_source {
    char path[FX_TIDY_PATH_BYTES]; /* relative to the root, with '/' */
    char *text, *bare, *code;
    size_t len;
};

/** The tree, sorted by path. */
struct fx_tree {
    struct fx_source *files;
    size_t count;
    size_t findings;
};

/** Reads every text file that rules look at; false and a message on stderr when it can't. */
bool fx_tree_load(struct fx_tree *tree, const char *root);
void fx_tree_free(struct fx_tree *tree);

/** Prints "path:line: rule: message" and counts it. */
void fx_find(struct fx_tree *tree, const struct fx_source *file, size_t line, const char *rule,
             const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/** 1-based line of `at`, a pointer into any of the file's three texts. */
size_t fx_line_of(const char *text, const char *at);
bool fx_under(const char *path, const char *prefix);
bool fx_ends_with(const char *path, const char *suffix);
bool fx_is_c(const struct fx_source *file);
bool fx_is_identifier_char(char c);
/** The next use of `word` as a whole identifier at or after `from`; NULL when there is none. */
const char *fx_next_word(const char *from, const char *word);

/** Blanks comments, strings and preprocessor lines. */
void fx_lex(const char *text, size_t len, char *bare, char *code);

/* The rules. Each looks at the whole tree and reports by fx_find. */
void fx_rule_layers(struct fx_tree *tree);
void fx_rule_calls(struct fx_tree *tree);
void fx_rule_numerics(struct fx_tree *tree);
void fx_rule_shape(struct fx_tree *tree);
void fx_rule_listed(struct fx_tree *tree);
void fx_rule_docs(struct fx_tree *tree);
void fx_rule_named(struct fx_tree *tree);
