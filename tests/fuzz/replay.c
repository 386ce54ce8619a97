/* The main of a fuzz target where libFuzzer is absent: runs it over each file of the folders named,
 * and over what libFuzzer would try first. */
#include "tests/fuzz/fuzz.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { INPUT_BYTES_MAX = 1 << 20, PATH_BYTES_MAX = 4096 };

/* An exact-size copy, so that ASan sees a read past the end. */
static void run_exact(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) abort();
    for (size_t i = 0; i < size; i++)
        copy[i] = data[i];
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static int run_file(const char *path) {
    static uint8_t data[INPUT_BYTES_MAX];
    FILE *file = fopen(path, "rbe");
    if (!file) {
        perror(path);
        return 1;
    }
    size_t size = fread(data, 1, sizeof data, file);
    (void)fclose(file);
    run_exact(data, size);
    for (size_t cut = 0; cut < size && cut < 4096; cut++) /* every prefix of a short seed */
        run_exact(data, cut);
    return 0;
}

static int run_folder(const char *folder, int *files) {
    struct dirent **names;
    int count = scandir(folder, &names, NULL, alphasort), failed = count < 0;
    if (failed) perror(folder);
    for (int i = 0; i < count; i++) {
        char path[PATH_BYTES_MAX];
        if (names[i]->d_name[0] != '.') {
            (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
            failed |= run_file(path);
            ++*files;
        }
        free(names[i]);
    }
    if (count >= 0) free(names);
    return failed;
}

int main(int argc, char **argv) {
    int failed = 0, files = 0;
    for (int i = 1; i < argc; i++)
        failed |= run_folder(argv[i], &files);
    (void)printf("%d inputs and their prefixes replayed\n", files);
    return failed || files == 0;
}
