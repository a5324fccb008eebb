#!/bin/sh
# Builds go-words.wasm from main.go, with the Go toolchain (1.22 or later; the module in the tree is of 1.26.8).
# The module has Go's runtime and library (BSD) in it.
set -eu

cd "$(dirname "$0")"
GOOS=wasip1 GOARCH=wasm GOFLAGS=-mod=mod GOTOOLCHAIN=local go build -trimpath -buildvcs=false -ldflags='-s -w' -o go-words.wasm .
