/* Byte streams over the contract Pipe: standard input and output. */
#ifndef SING_PIPE_H
#define SING_PIPE_H

#include <string.h>

#include "contracts.h"

/* Writes bytes to the importing end of a pipe, and waits until the reader takes more. */
static inline sing_status sing_pipe_write(pipe_imp *pipe, const void *bytes, size_t count)
{
    sing_block block;
    pipe_imp_message answer;
    if (count == 0)
        return SING_OK;
    sing_status status = sing_block_new(count, PIPE_WRITE_DATA_TYPE, &block);
    if (status != SING_OK)
        return status;
    memcpy(block.data, bytes, count);
    status = pipe_imp_send_write(pipe, block);
    if (status != SING_OK) {
        sing_block_free(block);
        return status;
    }
    status = pipe_imp_receive(pipe, SING_NEVER, &answer);
    if (status != SING_OK)
        return status;
    return answer.tag == PIPE_ACCEPTED ? SING_OK : SING_DEVICE_ERROR;
}

static inline sing_status sing_pipe_print(pipe_imp *pipe, const char *text)
{
    return sing_pipe_write(pipe, text, strlen(text));
}

/* Ends the stream: a pipe that is closed without it was cut short. */
static inline sing_status sing_pipe_end(pipe_imp *pipe)
{
    pipe_imp_message answer;
    sing_status status = pipe_imp_send_end(pipe);
    if (status == SING_OK)
        status = pipe_imp_receive(pipe, SING_NEVER, &answer);
    pipe_imp_close(pipe);
    return status;
}

/* Receives the next block from the exporting end; it belongs to the caller. SING_NOT_FOUND at the end of the stream,
   SING_CLOSED where it was cut short. */
static inline sing_status sing_pipe_read(pipe_exp *pipe, sing_block *into)
{
    pipe_exp_message message;
    sing_status status = pipe_exp_receive(pipe, SING_NEVER, &message);
    if (status != SING_OK)
        return status;
    if (message.tag != PIPE_WRITE) {
        pipe_exp_send_ended(pipe);
        return SING_NOT_FOUND;
    }
    *into = message.write.data;
    return pipe_exp_send_accepted(pipe);
}

#endif
