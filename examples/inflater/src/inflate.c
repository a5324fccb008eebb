#define Z_SOLO
#include <inflate.c>
