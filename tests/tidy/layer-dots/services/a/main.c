
#include "../b/b.h"
