#include "services/b/b.h"
#include "common/base/text.h"
int main(void) {
    exit(0);
}
