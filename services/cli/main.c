#include "services/cli/cli.h"

int main(int argc, char **argv) {
    return cli_run(argc - 1, argv + 1);
}
