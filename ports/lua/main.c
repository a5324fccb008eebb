/* Lua as a command: runs a script, statements of the command line, or standard input. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

/* The sources leave `os.clock` out for WASI. */
static int seconds(lua_State *state) {
    lua_pushnumber(state, (lua_Number)clock() / CLOCKS_PER_SEC);
    return 1;
}

static void open_libraries(lua_State *state) {
    luaL_openlibs(state);
    lua_getglobal(state, LUA_OSLIBNAME);
    lua_pushcfunction(state, seconds);
    lua_setfield(state, -2, "clock");
    lua_pop(state, 1);
}

static int usage(void) {
    fputs("usage: lua [-e STATEMENT]... [-i] [SCRIPT [WORD]...]; without SCRIPT and STATEMENT, standard input is run\n", stderr);
    return 2;
}

static int traced(lua_State *state) {
    const char *message = lua_tostring(state, 1);
    if (!message && luaL_callmeta(state, 1, "__tostring") && lua_isstring(state, -1)) {
        return 1;
    }
    luaL_traceback(state, state, message ? message : "an error that is no text", 1);
    return 1;
}

static int report(lua_State *state, int status) {
    if (status != LUA_OK) {
        const char *message = lua_tostring(state, -1);
        fprintf(stderr, "%s\n", message ? message : "an error without a message");
        lua_pop(state, 1);
    }
    return status;
}

/* Calls the function below `arguments`; leaves its results. */
static int call(lua_State *state, int arguments, int results) {
    int base = lua_gettop(state) - arguments;
    lua_pushcfunction(state, traced);
    lua_insert(state, base);
    int status = lua_pcall(state, arguments, results, base);
    lua_remove(state, base);
    return status;
}

static int run(lua_State *state, int loaded, int arguments) {
    return report(state, loaded == LUA_OK ? call(state, arguments, 0) : loaded);
}

/* Whether what was read so far could go on in the next line. */
static int is_open(lua_State *state, int status) {
    const char *message = status == LUA_ERRSYNTAX ? lua_tostring(state, -1) : NULL;
    size_t length = message ? strlen(message) : 0;
    return length >= 5 && !strcmp(message + length - 5, "<eof>");
}

static void show_results(lua_State *state, int base) {
    int results = lua_gettop(state) - base;
    if (results > 0) {
        luaL_checkstack(state, LUA_MINSTACK, "too many results");
        lua_getglobal(state, "print");
        lua_insert(state, base + 1);
        report(state, lua_pcall(state, results, 0, 0));
    }
    lua_settop(state, base);
}

/* Reads a line and appends it to the text on top; false at the end. */
static int read_line(lua_State *state, const char *prompt) {
    char line[1024];
    fputs(prompt, stdout);
    fflush(stdout);
    int got = 0;
    while (fgets(line, sizeof line, stdin)) {
        got = 1;
        lua_pushstring(state, line);
        lua_concat(state, 2);
        if (strchr(line, '\n')) {
            break;
        }
    }
    return got;
}

/* Runs what is typed, a statement or expression at a time, and shows values. */
static void interact(lua_State *state) {
    int base = lua_gettop(state);
    for (;;) {
        lua_settop(state, base);
        lua_pushliteral(state, "");
        if (!read_line(state, "> ")) {
            break;
        }
        lua_pushfstring(state, "return %s", lua_tostring(state, -1));
        int status = luaL_loadstring(state, lua_tostring(state, -1));
        while (status != LUA_OK) {
            lua_settop(state, base + 1);
            status = luaL_loadbuffer(state, lua_tostring(state, -1), lua_rawlen(state, -1), "=stdin");
            if (!is_open(state, status)) {
                break;
            }
            lua_settop(state, base + 1);
            if (!read_line(state, ">> ")) {
                break;
            }
        }
        if (lua_gettop(state) == base + 1) {
            break;
        }
        lua_replace(state, base + 1);
        lua_settop(state, base + 1);
        if (report(state, status == LUA_OK ? call(state, 0, LUA_MULTRET) : status) == LUA_OK) {
            show_results(state, base);
        }
    }
    lua_settop(state, base);
    putchar('\n');
}

/* The table `arg`: the script at 0, words behind it, what is before it at negative places. */
static void set_words(lua_State *state, int count, char **words, int script) {
    lua_createtable(state, count, 0);
    for (int at = 0; at < count; at++) {
        lua_pushstring(state, words[at]);
        lua_rawseti(state, -2, at - script);
    }
    lua_setglobal(state, "arg");
}

static int command(lua_State *state, int count, char **words) {
    int next = 1, interactive = 0, statements = 0;
    open_libraries(state);
    for (; next < count && words[next][0] == '-' && words[next][1]; next++) {
        if (!strcmp(words[next], "-i")) {
            interactive = 1;
        } else if (!strcmp(words[next], "-e") && next + 1 < count) {
            statements = 1;
            const char *text = words[++next];
            set_words(state, count, words, 0);
            if (run(state, luaL_loadbuffer(state, text, strlen(text), "=(command line)"), 0) != LUA_OK) {
                return 1;
            }
        } else {
            return usage();
        }
    }
    set_words(state, count, words, next < count ? next : 0);
    int status = LUA_OK;
    if (next < count) {
        const char *script = strcmp(words[next], "-") ? words[next] : NULL;
        int loaded = luaL_loadfile(state, script), arguments = 0;
        for (int at = next + 1; loaded == LUA_OK && at < count; at++, arguments++) {
            luaL_checkstack(state, 1, "too many words");
            lua_pushstring(state, words[at]);
        }
        status = run(state, loaded, arguments);
    } else if (!statements && !interactive) {
        status = run(state, luaL_loadfile(state, NULL), 0);
    }
    if (interactive) {
        interact(state);
    }
    return status == LUA_OK ? 0 : 1;
}

int main(int count, char **words) {
    lua_State *state = luaL_newstate();
    if (!state) {
        fputs("not enough memory\n", stderr);
        return 1;
    }
    int status = command(state, count, words);
    lua_close(state);
    return fflush(stdout) ? 1 : status;
}
