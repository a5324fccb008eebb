#!/bin/sh
# Builds wasm-web-hello.wasm. Needs the target wasm32-wasip1: `rustup target add wasm32-wasip1`.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cargo build --quiet --release --target wasm32-wasip1 --manifest-path "$here/Cargo.toml" --target-dir "$work"
cp "$work/wasm32-wasip1/release/wasm-web-hello.wasm" "$here/wasm-web-hello.wasm"
