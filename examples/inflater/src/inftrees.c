#define Z_SOLO
#include <inftrees.c>
