/* The runtime of programs in C: calls, messages and blocks.

   A program is a function `int sing_main(void)`, whose result is its exit status. It calls the kernel through the
   functions of `sing_abi.h`, and its peers through those that the contract compiler makes of its contracts:
   `contracts.h`. What its manifest gives it, it takes with `program.h`. */
#ifndef SING_H
#define SING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sing_abi.h"

/* The program. */
int sing_main(void);

/* Words that a thread and the kernel share, at the end of the thread's stack slot. */
struct sing_thread_block {
    uint64_t message[SING_MESSAGE_WORDS];
    uint64_t abi_table;
    uint64_t thread;
    uint64_t runtime[32];
    uint64_t reserved[30];
};

_Static_assert(sizeof(struct sing_thread_block) == 1024, "its size is a part of the ABI");

/* No state, where a message may not be sent. */
#define SING_NO_STATE 0xffff

/* An end of a channel of any contract; the kernel knows which. */
typedef struct sing_endpoint {
    uint64_t handle;
} sing_endpoint;

/* A block of the exchange heap. It belongs to the program until it is sent or freed. */
typedef struct sing_block {
    uint64_t handle;
    uint8_t *data;
    uint64_t bytes;
} sing_block;

/* A block on loan: it goes back in a message, and does when the borrower ends. */
typedef sing_block sing_lent_block;

static inline struct sing_thread_block *sing_thread_block(void)
{
    uint64_t stack;
    __asm__("mov %%rsp, %0" : "=r"(stack));
    return (struct sing_thread_block *)((stack | (SING_STACK_SLOT_BYTES - 1)) - (sizeof(struct sing_thread_block) - 1));
}

static inline const uint64_t *sing_table(void)
{
    return (const uint64_t *)sing_thread_block()->abi_table;
}

/* A word of the message buffer, as the last call has left it. */
static inline uint64_t sing_word(unsigned index)
{
    return ((volatile uint64_t *)sing_thread_block()->message)[index % SING_MESSAGE_WORDS];
}

static inline void sing_set_word(unsigned index, uint64_t value)
{
    ((volatile uint64_t *)sing_thread_block()->message)[index % SING_MESSAGE_WORDS] = value;
}

/* Puts text into the message buffer, cut to what fits; returns its length. */
static inline uint64_t sing_put_text(const char *text)
{
    volatile char *buffer = (volatile char *)sing_thread_block()->message;
    uint64_t length = 0;
    for (; text[length] && length < SING_TEXT_BYTES; length++)
        buffer[length] = text[length];
    return length;
}

/* What generated code makes messages of. */
static inline void sing_put(unsigned *at, uint64_t word)
{
    sing_set_word((*at)++, word);
}

static inline uint64_t sing_take(unsigned *at)
{
    return sing_word((*at)++);
}

/* Eight bytes for each word; the last is filled up with zeroes. */
static inline void sing_put_bytes(unsigned *at, const uint8_t *bytes, unsigned count)
{
    for (unsigned first = 0; first < count; first += 8) {
        uint64_t word = 0;
        for (unsigned index = first; index < count && index < first + 8; index++)
            word |= (uint64_t)bytes[index] << 8 * (index - first);
        sing_put(at, word);
    }
}

static inline void sing_take_bytes(unsigned *at, uint8_t *bytes, unsigned count)
{
    for (unsigned first = 0; first < count; first += 8) {
        uint64_t word = sing_take(at);
        for (unsigned index = first; index < count && index < first + 8; index++)
            bytes[index] = (uint8_t)(word >> 8 * (index - first));
    }
}

static inline void sing_put_block(unsigned *at, uint64_t handle)
{
    sing_set_word(*at, handle);
    *at += SING_BLOCK_WORDS;
}

static inline sing_block sing_take_block(unsigned *at)
{
    sing_block block = { sing_word(*at), (uint8_t *)sing_word(*at + 1), sing_word(*at + 2) };
    *at += SING_BLOCK_WORDS;
    return block;
}

/* Frees the blocks that return from a peer which has closed. */
static inline void sing_free_returned(uint64_t endpoint)
{
    while (sing_word(0) != 0) {
        uint64_t handles[SING_MESSAGE_WORDS / SING_BLOCK_WORDS];
        uint64_t count = sing_word(0);
        if (count > sizeof handles / sizeof *handles)
            count = sizeof handles / sizeof *handles;
        for (unsigned index = 0; index < count; index++)
            handles[index] = sing_word(1 + index * SING_BLOCK_WORDS);
        for (unsigned index = 0; index < count; index++)
            sing_heap_free(handles[index]);
        if (sing_channel_try_receive(endpoint).status != SING_CLOSED)
            return;
    }
}

/* A new block of zeroes, for elements of this type: `NAME_TYPE` of the contract. */
static inline sing_status sing_block_new(uint64_t bytes, uint64_t type, sing_block *into)
{
    sing_answer answer = sing_heap_allocate(bytes, type);
    if (answer.status == SING_OK)
        *into = (sing_block){ answer.value, (uint8_t *)sing_word(0), bytes };
    return answer.status;
}

static inline void sing_block_free(sing_block block)
{
    sing_heap_free(block.handle);
}

/* Copies the value of a parameter, cut to what fits, with a zero at its end; returns its whole length, or 0 if there is
   none. */
static inline uint64_t sing_parameter(unsigned index, char *into, size_t room)
{
    sing_answer length = sing_parameter_length(index);
    size_t done = 0;
    if (room == 0)
        return 0;
    if (length.status != SING_OK || length.value == UINT64_MAX) {
        into[0] = 0;
        return 0;
    }
    while (done < length.value && done < room - 1) {
        sing_answer read = sing_parameter_read(index, done);
        if (read.status != SING_OK || read.value == 0)
            break;
        for (uint64_t byte = 0; byte < read.value && done < room - 1; byte++)
            into[done++] = (char)(sing_word((unsigned)byte / 8) >> 8 * (byte % 8));
    }
    into[done] = 0;
    return length.value;
}

/* Writes a line of text to the program's debug sink, for the machine's log. */
static inline void sing_debug(const char *text)
{
    sing_debug_write(sing_put_text(text));
}

/* Ends the program, with this text in its epitaph. */
static inline _Noreturn void sing_panic(const char *text)
{
    for (;;)
        sing_process_panic(sing_put_text(text));
}

#endif
