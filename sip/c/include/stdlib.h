/* The heap, and a few functions more (ISO C 7.22). */
#ifndef SING_STDLIB_H
#define SING_STDLIB_H

#include <stddef.h>

#include "sing.h"

void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *block, size_t bytes);
void free(void *block);

static inline _Noreturn void abort(void)
{
    sing_panic("abort() was called");
}

static inline int abs(int number)
{
    return number < 0 ? -number : number;
}

#endif
