#!/bin/sh
# Builds wasm-knock-c.wasm. The module has wasi-libc (MIT, Apache-2.0 with LLVM exception, BSD) in it.
# Needs of Debian: clang-14 lld-14 wasi-libc libclang-rt-14-dev-wasm32.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
clang-14 --target=wasm32-wasi -Os -s -Wall -Wextra -o "$here/wasm-knock-c.wasm" "-I$here/../../sip/guest/include" "$here/main.c"
