#define Z_SOLO
#include <crc32.c>
