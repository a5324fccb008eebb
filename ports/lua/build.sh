#!/bin/sh
# Builds lua.wasm from main.c, longjmp.c and the sources of Lua in the crate lua-src, which comes from crates.io.
# The module has Lua (MIT) and wasi-libc (MIT, Apache-2.0 with LLVM exception, BSD) in it.
# Needs cargo, and of Debian: clang-14 lld-14 wasi-libc libclang-rt-14-dev-wasm32.
set -eu

. "$(dirname "$0")/../vendor.sh"
vendor lua-src 551.1.0
cd lua-5.4.9
echo "e4e7941707418e642483f38f27003f7d733c23284f18a5ac796693c05f212d34  -" >"$work/sum"
cat ./*.c ./*.h | sha256sum --check --quiet "$work/sum"

# Lua leaves a function by longjmp when there is an error.
clang-14 --target=wasm32-wasi -O2 -s -o "$here/lua.wasm" "-I$here" -I. \
    -mexception-handling -mllvm -wasm-enable-sjlj "-Dl_system(command)=((command) ? -1 : 0)" -Wno-return-type \
    -D_WASI_EMULATED_PROCESS_CLOCKS -D_WASI_EMULATED_SIGNAL -Wl,-z,stack-size=262144 \
    "$here/main.c" "$here/longjmp.c" ./*.c -lwasi-emulated-process-clocks -lwasi-emulated-signal
