/* SQLite as a command: runs statements on a database and prints rows, a line each, columns separated by `|`. */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sqlite3.h"

#define BUSY_MS 2000

static const char *separator = "|";
static int has_header = 0;

/* A folder above the one that this program was given is not there for it. SQLite looks at every folder on a path. */
static int look(const char *path, struct stat *found) {
    int result = lstat(path, found);
    if (result && errno == ENOTCAPABLE) {
        errno = ENOENT;
    }
    return result;
}

#ifdef __wasi__
/* This system's locks, which WASI has not: UNLOCK, SHARED or EXCLUSIVE of a range; returns an error number. */
enum { UNLOCK, SHARED, EXCLUSIVE };
__attribute__((import_module("sing"), import_name("lock"))) uint32_t lock(int file, uint32_t kind, uint64_t start,
                                                                         uint64_t length);
__attribute__((import_module("sing"), import_name("test_lock"))) uint32_t test_lock(int file, uint32_t kind, uint64_t start,
                                                                                   uint64_t length);

/* `fcntl` with locks, whose ranges SQLite counts from the start of a file. */
static int control(int file, int command, ...) {
    va_list more;
    va_start(more, command);
    int result = -1;
    if (command == F_SETLK || command == F_GETLK) {
        struct flock *range = va_arg(more, struct flock *);
        uint32_t kind = range->l_type == F_UNLCK ? UNLOCK : range->l_type == F_RDLCK ? SHARED : EXCLUSIVE;
        uint32_t error = (command == F_SETLK ? lock : test_lock)(file, kind, range->l_start, range->l_len);
        if (command == F_GETLK && (error == 0 || error == EAGAIN)) {
            /* Who holds it is not told; SQLite asks only whether somebody does. */
            range->l_type = error ? F_WRLCK : F_UNLCK;
            error = 0;
        }
        errno = error ? (int)error : errno;
        result = error ? -1 : 0;
    } else {
        result = fcntl(file, command, va_arg(more, int));
    }
    va_end(more);
    return result;
}
#else
#define control fcntl
#endif

static int usage(void) {
    fputs("usage: sqlite [--header] [--separator TEXT] DATABASE [SQL...]; without SQL, statements are read from standard input\n",
          stderr);
    return 2;
}

static int print_row(void *begun, int columns, char **values, char **names) {
    int *rows = begun;
    if (has_header && *rows == 0) {
        for (int column = 0; column < columns; column++) {
            printf("%s%s", column ? separator : "", names[column]);
        }
        putchar('\n');
    }
    ++*rows;
    for (int column = 0; column < columns; column++) {
        printf("%s%s", column ? separator : "", values[column] ? values[column] : "");
    }
    putchar('\n');
    return ferror(stdout);
}

/* Runs statements; returns the exit status. */
static int run(sqlite3 *database, const char *path, const char *sql) {
    int rows = 0;
    char *message = NULL;
    int result = sqlite3_exec(database, sql, print_row, &rows, &message);
    if (result == SQLITE_OK) {
        return 0;
    }
    fprintf(stderr, "%s: %s\n", path, message ? message : sqlite3_errstr(result));
    if (result == SQLITE_BUSY) {
        fputs("another program uses it\n", stderr);
    }
    sqlite3_free(message);
    return 1;
}

/* Reads standard input and runs each statement when it is complete. */
static int run_input(sqlite3 *database, const char *path) {
    size_t used = 0, room = 4096;
    char *text = malloc(room);
    int status = 0;
    while (text && fgets(text + used, (int)(room - used), stdin)) {
        used += strlen(text + used);
        if (text[used - 1] == '\n' && sqlite3_complete(text)) {
            status |= run(database, path, text);
            fflush(stdout);
            used = 0;
        }
        if (room - used < 2) {
            char *larger = realloc(text, room * 2);
            if (!larger) {
                break;
            }
            text = larger;
            room *= 2;
        }
    }
    if (!text || !feof(stdin)) {
        fputs("standard input: no memory, or it broke off\n", stderr);
        return 1;
    }
    if (used > 0) {
        status |= run(database, path, text);
    }
    free(text);
    return status;
}

int main(int count, char **words) {
    int next = 1;
    for (; next < count && words[next][0] == '-'; next++) {
        if (!strcmp(words[next], "--header")) {
            has_header = 1;
        } else if (!strcmp(words[next], "--separator") && next + 1 < count) {
            separator = words[++next];
        } else {
            return usage();
        }
    }
    if (next == count) {
        return usage();
    }
    const char *path = words[next++];
    sqlite3_vfs *files = sqlite3_vfs_find("unix");
    if (!files || files->xSetSystemCall(files, "lstat", (sqlite3_syscall_ptr)look) != SQLITE_OK ||
        files->xSetSystemCall(files, "fcntl", (sqlite3_syscall_ptr)control) != SQLITE_OK) {
        fputs("this SQLite was built without files\n", stderr);
        return 1;
    }
    sqlite3 *database = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    if (sqlite3_open_v2(path, &database, flags, "unix") != SQLITE_OK) {
        fprintf(stderr, "%s: %s; is its folder one that this program was given (`--dir`)?\n", path, sqlite3_errmsg(database));
        return 1;
    }
    sqlite3_busy_timeout(database, BUSY_MS);
    int status = 0;
    if (next == count) {
        status = run_input(database, path);
    }
    for (; next < count; next++) {
        status |= run(database, path, words[next]);
    }
    if (sqlite3_close(database) != SQLITE_OK || fflush(stdout)) {
        status = 1;
    }
    return status;
}
