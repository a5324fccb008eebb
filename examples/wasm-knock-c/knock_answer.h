/* Bindings of the contract KnockAnswer: cargo sing contract KnockAnswer --format wasm-c */
#ifndef SING_CONTRACT_KNOCK_ANSWER_H
#define SING_CONTRACT_KNOCK_ANSWER_H

#include "sing_guest.h"

#ifndef SING_HAS_KNOCK_ANSWER_ENDS
#define SING_HAS_KNOCK_ANSWER_ENDS
/* The importing end of a channel of KnockAnswer. */
typedef struct knock_answer_imp { uint64_t handle; uint16_t state; } knock_answer_imp;
/* The exporting end of a channel of KnockAnswer. */
typedef struct knock_answer_exp { uint64_t handle; uint16_t state; } knock_answer_exp;
SING_RECORD(".byte 11\n.ascii \"KnockAnswer\"\n.byte 86,246,96,234,111,105,49,46,26,97,172,34,238,227,141,82,158,160,9,230,121,113,201,153,237,157,23,6,187,174,19,218\n")
#endif
#ifndef SING_HAS_KNOCK_ANSWER
#define SING_HAS_KNOCK_ANSWER

/* An echo service: the server replies with what the client sent. */
#define KNOCK_ANSWER_CONTRACT UINT64_C(0xb3e3f17aafce71e9)
/* Its states. */
enum {
    KNOCK_ANSWER_STATE_START = 0,
    KNOCK_ANSWER_STATE_READY = 1,
    KNOCK_ANSWER_STATE_READY_AFTER_KNOCK = 2,
};
/* Tags of its messages. */
enum {
    KNOCK_ANSWER_SUCCESS = 0,
    KNOCK_ANSWER_KNOCK = 1,
    KNOCK_ANSWER_ANSWER = 2,
};
#define KNOCK_ANSWER_KNOCK_TEXT_TYPE UINT64_C(0x6828a99c1e3216ff)
#define KNOCK_ANSWER_ANSWER_TEXT_TYPE UINT64_C(0x6828a99c1e3216ff)
/* Creates a channel in state START, and gives both its ends. */
static inline sing_status knock_answer_new_channel(knock_answer_imp *imp, knock_answer_exp *exp)
{
    sing_answer answer = sing_channel_create(KNOCK_ANSWER_CONTRACT);
    if (answer.status == SING_OK) {
        *imp = (knock_answer_imp){ answer.value, 0 };
        *exp = (knock_answer_exp){ sing_word(0), 0 };
    }
    return answer.status;
}
/* A number and some text, whose ownership moves to the server. */
static inline sing_status knock_answer_imp_send_knock(knock_answer_imp *self, uint32_t number, sing_block text)
{
    static const uint16_t next[] = { 65535, 2, 65535 };
    if (self->state >= sizeof next / sizeof *next || next[self->state] == SING_NO_STATE)
        return SING_WRONG_STATE;
    unsigned at = 0;
    sing_put(&at, (uint32_t)number);
    sing_put_block(&at, text.handle);
    sing_answer answer = sing_channel_send(self->handle, UINT64_C(0x100010001));
    if (answer.status == SING_OK)
        self->state = next[self->state];
    return answer.status;
}
/* What the importing end receives: the member of its tag. */
typedef struct knock_answer_imp_message {
    uint16_t tag;
    union {
        struct {
            uint32_t number;
            sing_block text;
        } answer;
    };
} knock_answer_imp_message;
/* Waits until the deadline for the next message. SING_CLOSED: the peer has closed, and all its messages
   have been received. */
static inline sing_status knock_answer_imp_receive(knock_answer_imp *self, uint64_t deadline, knock_answer_imp_message *into)
{
    sing_answer answer = sing_channel_receive(self->handle, deadline);
    if (answer.status == SING_CLOSED)
        sing_free_returned(self->handle);
    if (answer.status != SING_OK)
        return answer.status;
    unsigned at = 0;
    into->tag = (uint16_t)answer.value;
    switch (into->tag) {
    case 0: {
        static const uint16_t next[] = { 1, 65535, 65535 };
        if (self->state < sizeof next / sizeof *next)
            self->state = next[self->state];
        break;
    }
    case 2: {
        static const uint16_t next[] = { 65535, 65535, 1 };
        into->answer.number = (uint32_t)sing_take(&at);
        into->answer.text = sing_take_block(&at);
        if (self->state < sizeof next / sizeof *next)
            self->state = next[self->state];
        break;
    }
    default:
        return SING_CONTRACT_MISMATCH;
    }
    return SING_OK;
}
/* Closes it: the peer receives what is queued, then SING_CLOSED. */
static inline void knock_answer_imp_close(knock_answer_imp *self)
{
    sing_channel_close(self->handle);
    self->handle = 0;
}
/* The server is ready. */
static inline sing_status knock_answer_exp_send_success(knock_answer_exp *self)
{
    static const uint16_t next[] = { 1, 65535, 65535 };
    if (self->state >= sizeof next / sizeof *next || next[self->state] == SING_NO_STATE)
        return SING_WRONG_STATE;
    sing_answer answer = sing_channel_send(self->handle, UINT64_C(0x0));
    if (answer.status == SING_OK)
        self->state = next[self->state];
    return answer.status;
}
/* The same number and text. */
static inline sing_status knock_answer_exp_send_answer(knock_answer_exp *self, uint32_t number, sing_block text)
{
    static const uint16_t next[] = { 65535, 65535, 1 };
    if (self->state >= sizeof next / sizeof *next || next[self->state] == SING_NO_STATE)
        return SING_WRONG_STATE;
    unsigned at = 0;
    sing_put(&at, (uint32_t)number);
    sing_put_block(&at, text.handle);
    sing_answer answer = sing_channel_send(self->handle, UINT64_C(0x100010002));
    if (answer.status == SING_OK)
        self->state = next[self->state];
    return answer.status;
}
/* What the exporting end receives: the member of its tag. */
typedef struct knock_answer_exp_message {
    uint16_t tag;
    union {
        struct {
            uint32_t number;
            sing_block text;
        } knock;
    };
} knock_answer_exp_message;
/* Waits until the deadline for the next message. SING_CLOSED: the peer has closed, and all its messages
   have been received. */
static inline sing_status knock_answer_exp_receive(knock_answer_exp *self, uint64_t deadline, knock_answer_exp_message *into)
{
    sing_answer answer = sing_channel_receive(self->handle, deadline);
    if (answer.status == SING_CLOSED)
        sing_free_returned(self->handle);
    if (answer.status != SING_OK)
        return answer.status;
    unsigned at = 0;
    into->tag = (uint16_t)answer.value;
    switch (into->tag) {
    case 1: {
        static const uint16_t next[] = { 65535, 2, 65535 };
        into->knock.number = (uint32_t)sing_take(&at);
        into->knock.text = sing_take_block(&at);
        if (self->state < sizeof next / sizeof *next)
            self->state = next[self->state];
        break;
    }
    default:
        return SING_CONTRACT_MISMATCH;
    }
    return SING_OK;
}
/* Closes it: the peer receives what is queued, then SING_CLOSED. */
static inline void knock_answer_exp_close(knock_answer_exp *self)
{
    sing_channel_close(self->handle);
    self->handle = 0;
}
/* Binds a path of the namespace, where KnockAnswer is served, to a new channel. */
static inline sing_status knock_answer_open(const char *path, knock_answer_imp *imp)
{
    uint64_t handle;
    sing_status status = sing_open(path, KNOCK_ANSWER_CONTRACT, &handle);
    if (status == SING_OK)
        *imp = (knock_answer_imp){ handle, 0 };
    return status;
}
#endif

#endif
