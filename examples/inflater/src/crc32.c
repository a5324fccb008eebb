/* The tables are computed in data of the process. */
#define DYNAMIC_CRC_TABLE
#define Z_SOLO
#include <crc32.c>
