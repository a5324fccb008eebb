#!/bin/sh
# Builds sqlite.wasm from main.c and the amalgamation of SQLite in the crate libsqlite3-sys, which comes from crates.io.
# The module has SQLite (public domain) and wasi-libc (MIT, Apache-2.0 with LLVM exception, BSD) in it.
# Needs cargo, and of Debian: clang-14 lld-14 wasi-libc libclang-rt-14-dev-wasm32.
# `build.sh --native FILE` builds a program for the host instead, to measure beside; any C compiler will do.
set -eu

. "$(dirname "$0")/../vendor.sh"
vendor libsqlite3-sys 0.35.0
sources=$PWD/sqlite3
echo "c9a0b6829b81d5f1b78392181f09744c818117a725667411d517b98149fcd3be  $sources/sqlite3.c" | sha256sum --check --quiet

build() {
    "$@" -O2 "-I$sources" -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_OMIT_WAL -DSQLITE_MAX_MMAP_SIZE=0 \
        -DSQLITE_TEMP_STORE=3 "$here/main.c" "$sources/sqlite3.c"
}
if [ "${1-}" = --native ]; then
    build "$(native_compiler)" -o "$2" -DENOTCAPABLE=ENOENT
else
    # wasi-libc has the structure of locks, but not their numbers: these are `fcntl` in main.c, and what SQLite asks it for.
    locks="-DF_GETLK=12 -DF_SETLK=13 -DF_SETLKW=14 -DF_RDLCK=0 -DF_WRLCK=1 -DF_UNLCK=2"
    # shellcheck disable=SC2086
    build clang-14 $locks --target=wasm32-wasi -s -o "$here/sqlite.wasm" -DLONGDOUBLE_TYPE=double -D_WASI_EMULATED_GETPID \
        -Wl,-z,stack-size=262144 -lwasi-emulated-getpid
fi
