#!/bin/sh
# Builds python.wasm from main.c, library.py and the sources of CPython and zlib in Debian 13, with its wasi-libc.
# The module has CPython (PSF), zlib (zlib), expat (MIT), libmpdec (BSD), HACL* (MIT, Apache-2.0) and wasi-libc (MIT,
# Apache-2.0 with LLVM exception, BSD) in it.
# Needs apt, make, a C compiler for the host, and of Debian: clang-19 lld-19 llvm-19 libclang-rt-19-dev-wasm32.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# An apt of its own: what is installed here does not matter to it, and it changes nothing.
mkdir -p apt/lists/partial apt/cache/archives/partial
signed="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
for kind in deb deb-src; do
    echo "$kind $signed http://deb.debian.org/debian trixie main"
done >apt/sources.list
: >apt/status
cat >apt/configuration <<END
Dir::Etc::sourcelist "$work/apt/sources.list";
Dir::Etc::sourceparts "/nonexistent";
Dir::State "$work/apt";
Dir::State::lists "$work/apt/lists";
Dir::State::status "$work/apt/status";
Dir::Cache "$work/apt/cache";
APT::Sandbox::User "root";
END
export APT_CONFIG="$work/apt/configuration"
apt-get update -qq
apt-get source -qq --download-only --tar-only python3.13 zlib
apt-get download -qq wasi-libc
sha256sum --check --quiet <<'END'
93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640  python3.13_3.13.5.orig.tar.xz
60dd315c07f616887caa029408308a018ace66e3d142726a97db164b3b8f69fb  zlib_1.3.dfsg+really1.3.1.orig.tar.gz
b7716260051d289248b7667f81fa2792c125d888ff51da3fa09c6272cc0bd11d  wasi-libc_0.0~git20241209.574b88d-2_all.deb
END
tar xf python3.13_*.orig.tar.xz
tar xf zlib_*.orig.tar.gz
dpkg-deb -x wasi-libc_*.deb root
sources=$work/Python-3.13.5
system=$work/root/usr
clang="clang-19 --target=wasm32-wasi --sysroot=$system"
# The date in `python -VV`: that of the sources.
SOURCE_DATE_EPOCH=$(stat -c %Y "$sources/configure")
export SOURCE_DATE_EPOCH

# The library that `zlib` and the packed standard library need.
(
    cd zlib-1.3.1
    for part in adler32 compress crc32 deflate inffast inflate inftrees trees uncompr zutil; do
        $clang -O2 -c "$part.c"
    done
    llvm-ar-19 rcs "$system/lib/wasm32-wasi/libz.a" ./*.o
    cp zlib.h zconf.h "$system/include/wasm32-wasi/"
)

# A Python for the host, of the same version: it runs parts of the build.
mkdir host
(
    cd host
    ../Python-3.13.5/configure -q --disable-test-modules --without-ensurepip "CFLAGS=-O1 -g0"
    make -s -j2 python
    # What a build of the whole would leave beside it.
    make -s -j2 sharedmods
) >host.log 2>&1 || { tail -n 20 host.log; exit 1; }

# Without the codecs of East Asia, whose tables are 0.7 MB.
without="_codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw _multibytecodec"
mkdir module
cd module
(
    for name in $without; do
        export "py_cv_module_$name=n/a"
    done
    CONFIG_SITE=../Python-3.13.5/Tools/wasm/config.site-wasm32-wasi CC=$clang CPP="$clang -E" AR=llvm-ar-19 RANLIB=llvm-ranlib-19 \
        READELF=true PKG_CONFIG=false ZLIB_CFLAGS=" " ZLIB_LIBS=-lz CFLAGS="-O2 -g0" HOSTRUNNER=true \
        ../Python-3.13.5/configure -q --host=wasm32-wasi --build=x86_64-linux-gnu \
        "--with-build-python=$work/host/python" --disable-test-modules --without-ensurepip
    "$work/host/python" "$here/archive.py" "$sources/Lib"
    mkdir -p Programs
    $clang -O2 -DPy_BUILD_CORE "-I$sources/Include/internal" -I. "-I$sources/Include" --embed-dir=. -Wno-c23-extensions \
        -c -o own.o "$here/main.c"
    make -s -j2 Programs/python.o libpython3.13.a
    cp own.o Programs/python.o
    make -s LDFLAGS=-s python.wasm
) >module.log 2>&1 || { tail -n 20 module.log; exit 1; }
cp python.wasm "$here/python.wasm"
