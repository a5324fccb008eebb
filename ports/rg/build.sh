#!/bin/sh
# Builds rg.wasm from the crate ripgrep, which comes from crates.io with the crates that its own lock file names.
# The module has ripgrep (Unlicense or MIT) and those crates (MIT, Apache-2.0, Unlicense) in it.
# Needs cargo with the target wasm32-wasip1 (`rustup target add wasm32-wasip1`).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The version; cargo checks the archives against the checksums of the registry and of the lock file.
version=15.1.0
cd "$work"
cargo install ripgrep --version "=$version" --locked --target wasm32-wasip1 --root "$work" --target-dir "$work/target" \
    --profile release-lto --config 'profile.release-lto.strip=true' --config 'profile.release-lto.debug=false' \
    --config 'profile.release-lto.opt-level="s"'
cp bin/rg.wasm "$here/rg.wasm"
