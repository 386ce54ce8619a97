#include "services/b/b.h"
