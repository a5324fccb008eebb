#define Z_SOLO
#include <inffast.c>
