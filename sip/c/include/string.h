/* Memory and strings, as in C (ISO C 7.24). */
#ifndef SING_STRING_H
#define SING_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *at, int value, size_t bytes);
int memcmp(const void *left, const void *right, size_t bytes);

static inline void *memchr(const void *at, int value, size_t bytes)
{
    const unsigned char *byte = at;
    for (size_t index = 0; index < bytes; index++)
        if (byte[index] == (unsigned char)value)
            return (void *)(byte + index);
    return NULL;
}

static inline size_t strlen(const char *text)
{
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

static inline int strncmp(const char *left, const char *right, size_t most)
{
    for (size_t index = 0; index < most; index++) {
        unsigned char one = (unsigned char)left[index], other = (unsigned char)right[index];
        if (one != other || one == 0)
            return (one > other) - (one < other);
    }
    return 0;
}

static inline int strcmp(const char *left, const char *right)
{
    return strncmp(left, right, (size_t)-1);
}

static inline char *strchr(const char *text, int letter)
{
    for (;; text++) {
        if (*text == (char)letter)
            return (char *)text;
        if (*text == 0)
            return NULL;
    }
}

static inline char *strrchr(const char *text, int letter)
{
    char *last = NULL;
    for (; (text = strchr(text, letter)); text++) {
        last = (char *)text;
        if (*text == 0)
            break;
    }
    return last;
}

static inline char *strcpy(char *restrict to, const char *restrict from)
{
    memcpy(to, from, strlen(from) + 1);
    return to;
}

static inline char *strncpy(char *restrict to, const char *restrict from, size_t bytes)
{
    size_t index = 0;
    for (; index < bytes && from[index]; index++)
        to[index] = from[index];
    for (; index < bytes; index++)
        to[index] = 0;
    return to;
}

static inline char *strcat(char *restrict to, const char *restrict from)
{
    strcpy(to + strlen(to), from);
    return to;
}

#endif
