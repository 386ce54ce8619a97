#include "common/rpc/server.h"
