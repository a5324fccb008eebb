//! Python as a WebAssembly program: scripts, the library that is in the module, errors, recursion without end.

use std::fs;
use std::time::Duration;

use end_to_end::{BareMachine, Image, LIMIT, Machine, Run, built_system, finish};

use crate::wasm_ports::disk;

test_needs::needs!(E2fsprogs, Qemu);

/// What is computed, written and read, with modules of the library in Python and in C.
const SCRIPT: &str = r##"
import json, os, re, sys, zlib
from collections import Counter
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
import helper

@dataclass
class Point:
    x: int
    y: int = 2

print(sys.argv[1:], os.getcwd(), helper.twice(21), Point(1))
text = " ".join(f"{n}:{n * n % 7}" for n in range(2000))
found = re.findall(r"\b(\d+):(\d)\b", text)
print(len(found), Counter(rest for _, rest in found).most_common(2), sum(range(10**6)))
with open("out/data.json", "w") as file:
    json.dump({"points": [vars(Point(n)) for n in range(300)], "name": "hélène"}, file, ensure_ascii=False)
with open("out/data.json") as file:
    again = json.load(file)
print(again["points"][299], again["name"].upper(), sorted(os.listdir(".")), os.path.getsize("out/data.json"))
print(zlib.decompress(zlib.compress(text.encode())) == text.encode(), Decimal(1) / 7, date(2024, 2, 29).isoformat())
print(2**100, f"{0.1 + 0.2:.17f}", input())
try:
    open("none")
except FileNotFoundError as error:
    print(error.errno, error.filename)
os.rename("out/data.json", "out/kept.json")

def outer(n):
    return inner(n - 1)

def inner(n):
    return 1 // n

outer(1)
"##;

/// Recursion of three kinds without an end, and of depths that a stack of the usual size has no room for.
const DEEP: &str = r##"
import sys
def plain(n): return plain(n + 1)
class Shown:
    def __repr__(self): return repr(self)
class Sorted:
    def __lt__(self, other): return sorted([Sorted(), Sorted()]) < 1
def tried(function):
    try: return function()
    except (RecursionError, MemoryError, SyntaxError) as error: return type(error).__name__
print(tried(lambda: plain(0)), tried(lambda: repr(Shown())), tried(lambda: sorted([Sorted(), Sorted()])))
sys.setrecursionlimit(10**9)
print(tried(lambda: repr(Shown())), tried(lambda: sorted([Sorted(), Sorted()])), tried(lambda: eval("(" * 5000)))
nested = []
for _ in range(100_000): nested = [nested]
print(tried(lambda: repr(nested)), tried(lambda: nested == [nested]))
def depth(n): return n and 1 + depth(n - 1)
print(eval("(" * 90 + "7" + ")" * 90), depth(50_000))
"##;

#[track_caller]
fn run(disk: &Image, commands: &str) -> Run {
    let limit = LIMIT + Duration::from_secs(120);
    let machine = Machine::new().system(built_system("wasm")).disk(disk.path()).limit(limit);
    let run = machine.run(&format!("cd /fs/disk0\n{commands}"));
    run.orderly();
    run
}

#[test]
fn python_runs_scripts() {
    let disk = disk(&[("s.py", SCRIPT), ("helper.py", "def twice(n):\n    return n * 2\n")]);
    let run = run(
        &disk,
        "echo typed | python s.py a b; echo status $?\n\
         python -c 'import sys; print(sys.version_info[:2], sys.platform); sys.exit(7)'; echo status $?\n\
         echo 'print(\"from input\")' | python -\n\
         python -m json.tool out/kept.json --indent 0 | head -n 3\n\
         python -c 'x ='; echo status $?\n\
         python none.py; echo status $?\n\
         echo 'x * 7' | python -q -i -c 'x = 6'\n",
    );
    let expected = "['a', 'b'] /fs/disk0 42 Point(x=1, y=2)\n2000 [('2', 572), ('1', 571)] 499999500000\n\
        {'x': 299, 'y': 2} HÉLÈNE ['__pycache__', 'helper.py', 'lost+found', 'out', 's.py'] 5922\n\
        True 0.1428571428571428571428571429 2024-02-29\n\
        1267650600228229401496703205376 0.30000000000000004 typed\n44 none\nstatus 1\n(3, 13) wasi\nstatus 7\nfrom input\n\
        {\n\"points\": [\n{\nstatus 1\nstatus 2\n42\n";
    assert_eq!(run.text(), expected, "{run}");
    for part in ["File \"/fs/disk0/s.py\", line 32, in outer", "ZeroDivisionError: integer division or modulo by zero"]
    {
        assert!(run.errors.contains(part), "{part}: {run}");
    }
    let contents = disk.contents();
    let file = fs::read_to_string(contents.path().join("out/kept.json")).expect("the file is there");
    assert!(file.ends_with("\"name\": \"hélène\"}"), "{file}");
    disk.check();
}

/// What has no end is an exception, whichever of its stacks it would use up.
const DEEP_SAYS: &str = "RecursionError RecursionError RecursionError\nRecursionError RecursionError MemoryError\n\
    RecursionError RecursionError\n7 50000\nstatus 0\n";

#[test]
fn recursion_without_end_is_an_exception() {
    let run = run(&disk(&[("deep.py", DEEP)]), "python deep.py; echo status $?\n");
    assert_eq!(run.text(), DEEP_SAYS, "{run}");
}

#[test]
#[ignore = "long: a boot image with Python"]
fn a_bare_machine_runs_python() {
    let disk = disk(&[("s.py", SCRIPT), ("deep.py", DEEP), ("helper.py", "def twice(n):\n    return n * 2\n")]);
    let path = disk.path().display().to_string();
    let commands =
        "cd /fs/disk0; python -c 'print(sum(range(10**6)))'; echo typed | python s.py; python deep.py; echo status $?";
    let machine = BareMachine::new("microvm").with(&["--system", "python-bare", "--disk", &path]);
    let run = finish(machine.command(Some(commands)), commands, LIMIT + Duration::from_secs(600));
    let text = run.text();
    assert!(text.starts_with("499999500000\n[] /fs/disk0 42 Point(x=1, y=2)\n"), "{run}");
    assert!(text.ends_with(DEEP_SAYS), "{run}");
    assert!(run.errors.contains("ZeroDivisionError"), "{run}");
    disk.check();
}
