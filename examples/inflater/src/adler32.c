#define Z_SOLO
#include <adler32.c>
