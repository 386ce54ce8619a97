#include "common/base/log.h"
