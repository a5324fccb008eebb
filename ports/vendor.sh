# For the build scripts beside it: `vendor CRATE VERSION` fetches a crate of crates.io, whose archive cargo checks against
# the registry's checksum, and goes to its folder. `$here` is the script's own folder.
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

vendor() {
    mkdir "$work/src"
    : >"$work/src/lib.rs"
    printf '[package]\nname = "sources"\nversion = "0.0.0"\nedition = "2024"\n[dependencies]\n%s = "=%s"\n' "$1" "$2" \
        >"$work/Cargo.toml"
    cd "$work"
    cargo vendor --quiet vendor >/dev/null
    cd "$work/vendor/$1"
}

# The compiler for programs of the host: that of the modules if it is there.
native_compiler() {
    command -v clang-14 || command -v "${CC:-cc}"
}
