"""The standard library in this program: a finder and loader of the modules that archive.py has packed."""

import _archive
import _frozen_importlib
import marshal
import sys

ROOT = "/lib/python"
_memory = _archive.memory()


def _read_index():
    length = int.from_bytes(_memory[:4], "little")
    return marshal.loads(_memory[4 : 4 + length]), 4 + length


# Name to (is a package, offset, compressed length).
_index, _start = _read_index()


class Library:
    """Finds and loads modules of the archive."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        entry = _index.get(name)
        if entry is None:
            return None
        place = ROOT + "/" + name.replace(".", "/") + ("/__init__.py" if entry[0] else ".py")
        spec = _frozen_importlib.ModuleSpec(name, Library, origin=place, is_package=entry[0])
        if entry[0]:
            spec.submodule_search_locations.append(place[: -len("/__init__.py")])
        spec.has_location = True
        return spec

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def get_code(name):
        import zlib

        entry = _index.get(name)
        if entry is None:
            raise ImportError("no module of the standard library: " + repr(name), name=name)
        begin = _start + entry[1]
        return marshal.loads(zlib.decompress(_memory[begin : begin + entry[2]]))

    @staticmethod
    def exec_module(module):
        exec(Library.get_code(module.__name__), module.__dict__)

    @staticmethod
    def is_package(name):
        return _index[name][0]

    @staticmethod
    def get_source(name):
        return None


def install():
    """Before anything else is imported."""
    sys.meta_path.append(Library)


def settle():
    """Behind the finder of folders: as elsewhere, modules beside a script come before those of the library."""
    sys.meta_path.remove(Library)
    sys.meta_path.append(Library)
