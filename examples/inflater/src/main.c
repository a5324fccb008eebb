/* Decompresses streams with zlib, one for each client, until the stream or the client ends. */
#include <stdlib.h>
#include <string.h>

#define Z_SOLO
#include <zlib.h>

#include "contracts.h"
#include "program.h"

#define TEXT_BYTES 65536
/* The largest window, and the headers of both formats. */
#define WINDOW_BITS (15 + 32)

static voidpf allocate(voidpf opaque, uInt items, uInt size)
{
    (void)opaque;
    return calloc(items, size);
}

static void release(voidpf opaque, voidpf block)
{
    (void)opaque;
    free(block);
}

/* Decompresses what the request has, as far as the text goes, and answers. */
static sing_status answer(inflater_exp *client, inflater_exp_message *request, z_stream *stream)
{
    sing_lent_block data = request->input.data;
    sing_block text;
    uint32_t first = request->input.first, end = request->input.end;
    if (end > data.bytes || first > end)
        return inflater_exp_send_malformed(client, first, data);
    sing_status status = sing_block_new(TEXT_BYTES, INFLATER_OUTPUT_TEXT_TYPE, &text);
    if (status != SING_OK)
        return status;
    stream->next_in = data.data + first;
    stream->avail_in = end - first;
    stream->next_out = text.data;
    stream->avail_out = TEXT_BYTES;
    int result = inflate(stream, Z_NO_FLUSH);
    uint32_t next = end - stream->avail_in;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        sing_block_free(text);
        return inflater_exp_send_malformed(client, next, data);
    }
    /* A block has no length of its own for what is in it: cut it. */
    sing_block cut;
    uint64_t length = TEXT_BYTES - stream->avail_out;
    status = sing_block_new(length, INFLATER_OUTPUT_TEXT_TYPE, &cut);
    if (status != SING_OK)
        return status;
    memcpy(cut.data, text.data, length);
    sing_block_free(text);
    if (result == Z_STREAM_END)
        return inflater_exp_send_last(client, next, data, cut);
    return inflater_exp_send_output(client, next, data, cut);
}

int sing_main(void)
{
    inflater_exp client;
    inflater_exp_message request;
    z_stream stream = { .zalloc = allocate, .zfree = release };
    if (program_take_client(&client) != SING_OK)
        sing_panic("nobody has given me a client");
    if (inflateInit2(&stream, WINDOW_BITS) != Z_OK)
        sing_panic("zlib does not start");
    while (client.state != INFLATER_STATE_ENDED && inflater_exp_receive(&client, SING_NEVER, &request) == SING_OK)
        if (answer(&client, &request, &stream) != SING_OK)
            return 1;
    inflateEnd(&stream);
    return 0;
}
