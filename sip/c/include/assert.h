/* Assertions (ISO C 7.2): one that fails ends the program. */
#include "sing.h"

#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define SING_TEXT(text) #text
#define SING_LINE(line) SING_TEXT(line)
#define assert(condition) \
    ((condition) ? (void)0 : sing_panic("assertion failed at " __FILE__ ":" SING_LINE(__LINE__) ": " #condition))
#endif
