/* A client of the contract KnockAnswer in C: knocks at `/service/answer`, or the service that it is told. */
#include <stdio.h>

#include "knock_answer.h"

static const char TEXT[] = "knock";

/* Knocks once, with a number; 1 if what comes back is what was sent. */
static int knock(knock_answer_imp *service, uint32_t number)
{
    knock_answer_imp_message answer;
    char same[sizeof TEXT] = "";
    sing_block text;
    if (sing_block_new(sizeof TEXT, KNOCK_ANSWER_KNOCK_TEXT_TYPE, &text) != SING_OK)
        return 0;
    sing_block_write(text, 0, TEXT, sizeof TEXT);
    if (knock_answer_imp_send_knock(service, number, text) != SING_OK)
        return 0;
    if (knock_answer_imp_receive(service, SING_NEVER, &answer) != SING_OK)
        return 0;
    sing_block_read(answer.answer.text, 0, same, sizeof same);
    sing_block_free(answer.answer.text);
    return answer.answer.number == number && memcmp(same, TEXT, sizeof TEXT) == 0;
}

int main(int count, char **words)
{
    const char *path = count > 1 ? words[1] : "/service/answer";
    knock_answer_imp service;
    knock_answer_imp_message ready;
    sing_status status = knock_answer_open(path, &service);
    if (status == SING_OK)
        status = knock_answer_imp_receive(&service, SING_NEVER, &ready);
    if (status != SING_OK) {
        fprintf(stderr, "%s: status %u\n", path, (unsigned)status);
        return 1;
    }
    int answers = 0;
    for (uint32_t number = 0; number < 3; number++)
        answers += knock(&service, number);
    knock_answer_imp_close(&service);
    printf("%d answers from %s\n", answers, path);
    return answers == 3 ? 0 : 1;
}
