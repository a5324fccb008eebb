/* Decodes PackBits (TIFF 6.0, section 9), and trusts what it gets: it never asks whether the text still fits. Whoever
   sends it too much writes over its stack, and reaches nobody else. */
#include <string.h>

#include "contracts.h"
#include "program.h"

#define TEXT_BYTES 128

/* Decodes to `text`, however long that gets; returns the length, or -1 and where the data ends too early. */
static int64_t decode(const volatile uint8_t *data, uint64_t count, volatile uint8_t *text, uint32_t *position)
{
    int64_t length = 0;
    uint64_t at = 0;
    while (at < count) {
        *position = (uint32_t)at;
        uint8_t head = data[at++];
        if (head == 128)
            continue;
        unsigned many = head < 128 ? head + 1u : 257u - head;
        if (at + (head < 128 ? many : 1) > count)
            return -1;
        for (unsigned index = 0; index < many; index++)
            text[length++] = data[head < 128 ? at + index : at];
        at += head < 128 ? many : 1;
    }
    return length;
}

/* A function of its own, so that its return address is behind the buffer. */
static __attribute__((noinline)) sing_status answer(decoder_exp *client, sing_lent_block data)
{
    uint8_t text[TEXT_BYTES];
    uint32_t position = 0;
    sing_block block;
    int64_t length = decode(data.data, data.bytes, text, &position);
    if (length < 0)
        return decoder_exp_send_malformed(client, data, position);
    sing_status status = sing_block_new((uint64_t)length, DECODER_DECODED_TEXT_TYPE, &block);
    if (status != SING_OK)
        return status;
    memcpy(block.data, text, (size_t)length);
    return decoder_exp_send_decoded(client, data, block);
}

int sing_main(void)
{
    decoder_exp client;
    decoder_exp_message request;
    if (program_take_client(&client) != SING_OK)
        sing_panic("nobody has given me a client");
    while (decoder_exp_receive(&client, SING_NEVER, &request) == SING_OK)
        if (answer(&client, request.decode.data) != SING_OK)
            return 1;
    return 0;
}
