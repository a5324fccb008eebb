/* Contracts for WebAssembly programs in C: what the headers that `cargo sing contract NAME --format wasm-c` writes are made
   of. Files, sockets and clocks are WASI's, by its C library.

   A status is 0, SING_OK, or says what is wrong; the kernel ends a program that breaks a contract. */
#ifndef SING_GUEST_H
#define SING_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint32_t sing_status;

/* Statuses. */
enum {
    SING_OK = 0,
    SING_CLOSED = 1,             /* the peer has ended, and all its messages have been received */
    SING_TIMED_OUT = 2,
    SING_BAD_HANDLE = 4,
    SING_BAD_ARGUMENT = 5,
    SING_NOT_PERMITTED = 6,      /* the program may not, or the contract is one of the template's own */
    SING_QUOTA_EXCEEDED = 7,
    SING_NOT_FOUND = 8,          /* no such name, or the manifest does not list the contract */
    SING_WRONG_STATE = 11,
    SING_CONTRACT_MISMATCH = 13, /* what is served there speaks another contract */
    SING_TOO_LARGE = 15,
};

#define SING_NEVER UINT64_MAX
#define SING_MESSAGE_WORDS 64
/* No state, where a message may not be sent. */
#define SING_NO_STATE 0xffff

/* An end of a channel of any contract; the kernel knows which. */
typedef struct sing_endpoint {
    uint64_t handle;
} sing_endpoint;

/* A block of the exchange heap, outside of the program's memory. It belongs to the program until it is sent or freed. */
typedef struct sing_block {
    uint64_t handle;
    uint64_t bytes;
} sing_block;

/* A block on loan: it goes back in a message, and does when the borrower ends. */
typedef sing_block sing_lent_block;

typedef struct sing_answer {
    sing_status status;
    uint64_t value;
} sing_answer;

#define SING_IMPORT(name) __attribute__((import_module("sing"), import_name(#name)))
uint64_t sing_import_endpoint(uint32_t slot) SING_IMPORT(endpoint);
uint32_t sing_import_open(const char *path, size_t bytes, uint64_t contract, uint64_t *handle) SING_IMPORT(open);
uint32_t sing_import_channel(uint64_t contract, uint64_t *handles) SING_IMPORT(channel);
uint32_t sing_import_describe(uint64_t endpoint, uint64_t *words) SING_IMPORT(describe);
uint32_t sing_import_send(uint64_t endpoint, uint32_t tag, const uint64_t *words, uint32_t scalars, uint32_t blocks,
                          uint32_t endpoints) SING_IMPORT(send);
uint32_t sing_import_receive(uint64_t endpoint, uint64_t deadline, uint64_t *words, size_t room) SING_IMPORT(receive);
uint32_t sing_import_wait(const uint64_t *endpoints, size_t count, uint64_t deadline) SING_IMPORT(wait);
uint64_t sing_import_block(uint64_t bytes, uint64_t type) SING_IMPORT(block);
uint32_t sing_import_read(uint64_t block, uint64_t from, void *into, size_t bytes) SING_IMPORT(read);
uint32_t sing_import_write(uint64_t block, uint64_t from, const void *bytes, size_t count) SING_IMPORT(write);
uint32_t sing_import_close(uint64_t handle) SING_IMPORT(close);
uint64_t sing_import_time(void) SING_IMPORT(time);

/* A record of the custom section by which the module is checked. */
#define SING_RECORD(content) __asm__(".section .custom_section.sing.contracts,\"\",@\n" content ".text\n");

/* The message: a word with its tag and counts, then its words. */
static uint64_t sing_message[1 + SING_MESSAGE_WORDS];

/* What generated code makes messages of. */
static inline uint64_t sing_word(unsigned index)
{
    return sing_message[index % SING_MESSAGE_WORDS];
}

static inline void sing_put(unsigned *at, uint64_t word)
{
    if (*at < SING_MESSAGE_WORDS)
        sing_message[1 + (*at)++] = word;
}

static inline uint64_t sing_take(unsigned *at)
{
    return *at < SING_MESSAGE_WORDS ? sing_message[1 + (*at)++] : 0;
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
    sing_put(at, handle);
}

static inline sing_block sing_take_block(unsigned *at)
{
    uint64_t handle = sing_take(at);
    return (sing_block){ handle, sing_take(at) };
}

static inline sing_answer sing_channel_create(uint64_t contract)
{
    uint64_t handles[2] = { 0, 0 };
    sing_status status = sing_import_channel(contract, handles);
    sing_message[0] = handles[1];
    return (sing_answer){ status, handles[0] };
}

/* `message` has the tag in its lowest 16 bits, then the number of scalars, of blocks, and of endpoints. */
static inline sing_answer sing_channel_send(uint64_t endpoint, uint64_t message)
{
    uint32_t scalars = (uint16_t)(message >> 16), blocks = (uint8_t)(message >> 32), endpoints = (uint8_t)(message >> 40);
    return (sing_answer){
        sing_import_send(endpoint, (uint16_t)message, sing_message + 1, scalars, blocks, endpoints), 0,
    };
}

static inline sing_answer sing_channel_receive(uint64_t endpoint, uint64_t deadline)
{
    sing_status status = sing_import_receive(endpoint, deadline, sing_message, 1 + SING_MESSAGE_WORDS);
    return (sing_answer){ status, sing_message[0] };
}

static inline void sing_channel_close(uint64_t endpoint)
{
    sing_import_close(endpoint);
}

/* Frees the blocks that return from a peer which has closed. */
static inline void sing_free_returned(uint64_t endpoint)
{
    (void)endpoint;
    unsigned at = 0;
    for (unsigned count = (uint8_t)(sing_message[0] >> 32); count > 0; count--)
        sing_import_close(sing_take_block(&at).handle);
}

/* Binds a path of the namespace to a new channel. */
static inline sing_status sing_open(const char *path, uint64_t contract, uint64_t *handle)
{
    return sing_import_open(path, strlen(path), contract, handle);
}

/* Takes what the program was given, by its index among the [[endpoint]]s of its manifest; 0: it is not there. */
static inline sing_endpoint sing_given(uint32_t slot)
{
    return (sing_endpoint){ sing_import_endpoint(slot) };
}

/* Whether an endpoint of any contract is of this one, at this end (1: the importing one) and in this state: then its handle
   can be that of a typed one. */
static inline bool sing_is(sing_endpoint endpoint, uint64_t contract, bool importer, uint16_t state)
{
    uint64_t words[3];
    return sing_import_describe(endpoint.handle, words) == SING_OK && words[0] == contract && words[1] == importer
        && words[2] == state;
}

/* A new block of zeroes, for elements of this type: `NAME_TYPE` of the contract. */
static inline sing_status sing_block_new(uint64_t bytes, uint64_t type, sing_block *into)
{
    *into = (sing_block){ sing_import_block(bytes, type), bytes };
    return into->handle ? SING_OK : SING_QUOTA_EXCEEDED;
}

/* Copies a part of a block. */
static inline sing_status sing_block_read(sing_block block, uint64_t from, void *into, size_t bytes)
{
    return sing_import_read(block.handle, from, into, bytes);
}

static inline sing_status sing_block_write(sing_block block, uint64_t from, const void *bytes, size_t count)
{
    return sing_import_write(block.handle, from, bytes, count);
}

static inline void sing_block_free(sing_block block)
{
    sing_import_close(block.handle);
}

/* Waits until one of these handles has a message or is closed; its place, or `count` at the deadline. */
static inline size_t sing_wait(const uint64_t *handles, size_t count, uint64_t deadline)
{
    uint32_t place = sing_import_wait(handles, count, deadline);
    return place < count ? place : count;
}

/* Nanoseconds of the monotonic clock. */
static inline uint64_t sing_time(void)
{
    return sing_import_time();
}

#endif
