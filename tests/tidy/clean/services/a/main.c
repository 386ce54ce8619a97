#include "services/a/a.h"
#include "common/base/text.h"
int main(void) {
    exit(0);
}
