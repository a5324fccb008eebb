#define Z_SOLO
#include <zutil.c>
