/* Jumps out of functions, over exceptions of WebAssembly: `longjmp.c` has what the compiler calls for them. */
#ifndef SETJMP_H
#define SETJMP_H

typedef struct {
    unsigned long id; /* of the call of `setjmp`; the compiler's code reads it */
} jmp_buf[1];

int setjmp(jmp_buf) __attribute__((returns_twice));
_Noreturn void longjmp(jmp_buf, int);

#endif
