#include <stdio.h>
#  include <grpc/grpc.h>
