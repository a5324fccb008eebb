#!/bin/sh
# Builds wasm-cat.wasm. Needs the target wasm32-wasip1: `rustup target add wasm32-wasip1`.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A small stack, and memory that does not have to grow: all of it is cleared when the program starts.
RUSTFLAGS="-C link-arg=-zstack-size=65536 -C link-arg=--initial-memory=262144" cargo build --quiet --release --target wasm32-wasip1 --manifest-path "$here/Cargo.toml" --target-dir "$work"
cp "$work/wasm32-wasip1/release/wasm-cat.wasm" "$here/wasm-cat.wasm"
