#!/bin/sh
# Builds js.wasm from the sources of QuickJS-ng in the crate rquickjs-sys, which comes from crates.io.
# The module has QuickJS-ng (MIT) and wasi-libc (MIT, Apache-2.0 with LLVM exception, BSD) in it.
# Needs cargo, and of Debian: clang-14 lld-14 wasi-libc libclang-rt-14-dev-wasm32.
# `build.sh --native FILE` builds a program for the host instead, to measure beside; any C compiler will do.
set -eu

. "$(dirname "$0")/../vendor.sh"
vendor rquickjs-sys 0.14.0
cd quickjs
echo "10fc49c7a1fbe83a423055dd4e5c6e6cc3cc750acd39c7acdcfd085c10850db9  -" >"$work/sum"
cat ./*.c ./*.h gen/*.c | sha256sum --check --quiet "$work/sum"

build() {
    libraries=$1
    shift
    # shellcheck disable=SC2086 # Each is a word.
    "$@" -O2 -I. -D_GNU_SOURCE -DNDEBUG \
        quickjs.c libregexp.c libunicode.c dtoa.c quickjs-libc.c qjs.c gen/repl.c gen/standalone.c $libraries
}
if [ "${1-}" = --native ]; then
    build "-lm -lpthread -ldl" "$(native_compiler)" -o "$2"
else
    build "-lwasi-emulated-process-clocks -lwasi-emulated-signal" clang-14 --target=wasm32-wasi -s -o "$here/js.wasm" \
        -D_WASI_EMULATED_PROCESS_CLOCKS -D_WASI_EMULATED_SIGNAL -Wl,-z,stack-size=262144
fi
