"""Packs the standard library: archive.py FOLDER writes `archive` and `library.code` to the working folder.

The archive is the length of the index (4 bytes), the index (marshalled: name to whether it is a package, offset and
length), and of each module its code, marshalled and compressed. Left out is what cannot run here, and what has no use.
"""

import importlib.util
import marshal
import pathlib
import sys
import zlib

LEFT_OUT = {
    # For other systems, or for fun.
    "_aix_support", "_android_support", "_apple_support", "_ios_support", "_osx_support", "antigravity", "msilib", "nturl2path",
    "this", "turtle", "turtledemo",
    # Processes, threads, terminals, windows.
    "asyncio", "concurrent", "curses", "idlelib", "multiprocessing", "pty", "tkinter", "webbrowser",
    # Extension modules that are not there.
    "ctypes", "dbm", "sqlite3", "ssl",
    # Servers, and clients of the network but HTTP.
    "ftplib", "http.server", "imaplib", "poplib", "smtplib", "wsgiref", "xmlrpc",
    # Installing and testing Python itself; the texts of its manual.
    "__phello__", "ensurepip", "lib2to3", "pip", "pydoc_data", "site-packages", "test", "venv",
    # Codecs that are not there.
    *("encodings." + name for name in (
        "big5", "big5hkscs", "cp932", "cp949", "cp950", "euc_jis_2004", "euc_jisx0213", "euc_jp", "euc_kr", "gb18030", "gb2312",
        "gbk", "hz", "iso2022_jp", "iso2022_jp_1", "iso2022_jp_2", "iso2022_jp_2004", "iso2022_jp_3", "iso2022_jp_ext",
        "iso2022_kr", "johab", "mbcs", "oem", "shift_jis", "shift_jis_2004", "shift_jisx0213",
    )),
    # CPython has them as frozen modules.
    "_collections_abc", "_sitebuiltins", "abc", "codecs", "genericpath", "importlib._bootstrap", "importlib._bootstrap_external",
    "importlib.machinery", "importlib.util", "io", "ntpath", "os", "posixpath", "runpy", "site", "stat", "zipimport",
}
# Of the editor of lines, which needs a terminal's modes, `pydoc` uses the pager.
PART = {"_pyrepl": {"_pyrepl", "_pyrepl.pager"}}


def modules(library):
    for path in sorted(library.rglob("*.py")):
        parts = path.relative_to(library).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        yield name, is_package, path


def is_left_out(name):
    parts = name.split(".")
    if parts[0] in PART and name not in PART[parts[0]]:
        return True
    return any(".".join(parts[:count]) in LEFT_OUT for count in range(1, len(parts) + 1))


def main():
    library = pathlib.Path(sys.argv[1])
    index, packed = {}, bytearray()
    for name, is_package, path in modules(library):
        if is_left_out(name):
            continue
        place = "/lib/python/" + name.replace(".", "/") + ("/__init__.py" if is_package else ".py")
        code = compile(path.read_bytes(), place, "exec", dont_inherit=True, optimize=0)
        data = zlib.compress(marshal.dumps(code), 9)
        index[name] = (is_package, len(packed), len(data))
        packed += data
    head = marshal.dumps(index)
    pathlib.Path("archive").write_bytes(len(head).to_bytes(4, "little") + head + packed)
    own = compile(pathlib.Path(__file__).with_name("library.py").read_bytes(), "<frozen _library>", "exec", dont_inherit=True)
    pathlib.Path("library.code").write_bytes(marshal.dumps(own))


main()
