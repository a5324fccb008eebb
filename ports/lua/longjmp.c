/* What clang calls for `setjmp` and `longjmp` (-wasm-enable-sjlj). A function that calls `setjmp` has a table of its
   calls: number and label of each, ended by a zero. `longjmp` throws; the function that has the number goes to the label,
   any other throws on. */

#include <stdlib.h>

typedef struct {
    unsigned long id, label;
} Entry;

/* The compiler's code reads both fields. */
static struct {
    unsigned long *env;
    int value;
} jump;

static unsigned long calls;
static int second_result;

/* The tag of exceptions that `longjmp` throws, for `__builtin_wasm_throw`. */
#define C_LONGJMP 1

int getTempRet0(void) { return second_result; }

void setTempRet0(int value) { second_result = value; }

/* Notes a call; returns the table, and how many entries it has by `getTempRet0`. */
void *saveSetjmp(unsigned long *env, unsigned long label, Entry *table, int size) {
    *env = ++calls;
    int at = 0;
    while (at < size && table[at].id && table[at].label != label) {
        at++;
    }
    if (at + 1 >= size) {
        size *= 2;
        table = realloc(table, sizeof(Entry) * (size + 1));
        if (!table) {
            abort();
        }
    }
    int is_new = table[at].id == 0 || table[at].label != label;
    table[at] = (Entry){*env, label};
    if (is_new) {
        table[at + 1].id = 0;
    }
    second_result = size;
    return table;
}

/* The label of a call; zero if it is none of this table. */
unsigned long testSetjmp(unsigned long id, const Entry *table, int size) {
    for (int at = 0; at < size && table[at].id; at++) {
        if (table[at].id == id) {
            return table[at].label;
        }
    }
    return 0;
}

_Noreturn void __wasm_longjmp(void *env, int value) {
    jump.env = env;
    jump.value = value ? value : 1;
    __builtin_wasm_throw(C_LONGJMP, &jump);
}
