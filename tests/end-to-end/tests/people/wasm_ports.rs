//! Programs of others as WebAssembly, at work in the shell: ripgrep, Lua, QuickJS, a Go program.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use end_to_end::{Format, Image, LIMIT, Machine, Run, built_system};

test_needs::needs!(E2fsprogs);

/// Makes a folder with text files, three levels deep.
fn tree(root: &Path) {
    let words = ["violet", "green", "Amber", "grey", "crimson", "teal"];
    for folder in ["", "a", "a/b", "a/b/c", "d"] {
        fs::create_dir_all(root.join(folder)).expect("a folder");
        for file in 0..4 {
            let lines: Vec<String> = (0..40)
                .map(|line| {
                    format!(
                        "{} {} line {line} of {file}",
                        words[(line * 7 + file) % 6],
                        words[(line + folder.len()) % 6]
                    )
                })
                .collect();
            fs::write(root.join(folder).join(format!("{file}.txt")), lines.join("\n") + "\n").expect("a file");
        }
    }
    fs::write(root.join("a/binary.bin"), b"violet\0amber\n").expect("a file");
}

#[track_caller]
fn run(disk: &Image, commands: &str) -> Run {
    let limit = LIMIT + Duration::from_secs(60);
    let run = Machine::new()
        .system(built_system("wasm"))
        .disk(disk.path())
        .limit(limit)
        .run(&format!("cd /fs/disk0\n{commands}"));
    run.orderly();
    run
}

/// A disk with these files, and an empty folder `out`.
pub fn disk(files: &[(&str, &str)]) -> Image {
    let source = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(source.path().join(name), text).expect("a file");
    }
    fs::create_dir(source.path().join("out")).expect("a folder");
    Image::of(source.path(), Format::default())
}

/// Lines in an order of their own.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn ripgrep_finds_what_grep_finds() {
    let source = tempfile::tempdir().expect("a folder");
    tree(source.path());
    let disk = Image::of(source.path(), Format::default());
    let searches = [
        (
            "rg -n --no-heading 'violet.*(teal|grey) line [12][0-9]' .",
            "grep -rnE 'violet.*(teal|grey) line [12][0-9]' .",
        ),
        ("rg -i -c amber a -g '*.txt'", "grep -ric amber a --include=*.txt"),
        ("rg -w -l 'line 3' a/b", "grep -rwl 'line 3' a/b"),
        ("rg -o -I 'green|crim[a-z]+' d", "grep -rohE 'green|crim[a-z]+' d"),
    ];
    for (ours, hosts) in searches {
        let ours = run(&disk, ours);
        let host = Command::new("sh").args(["-c", hosts]).current_dir(source.path()).output().expect("grep runs");
        let host = String::from_utf8(host.stdout).expect("text");
        let ours = ours.text();
        assert!(!host.is_empty(), "{hosts} finds nothing");
        assert_eq!(sorted(&ours), sorted(&host), "{hosts}");
    }
    let rest = run(
        &disk,
        "rg nowhere; echo status $?\nrg '(' .; echo status $?\necho 'one green line' | rg -o gre.. -\nrg --files a/b/c --sort path\n",
    );
    assert_eq!(
        rest.text(),
        "status 1\nstatus 2\ngreen\na/b/c/0.txt\na/b/c/1.txt\na/b/c/2.txt\na/b/c/3.txt\n",
        "{rest}"
    );
    assert!(rest.errors.contains("unclosed group"), "{rest}");
}

/// Counts, catches errors in many ways, reads a file that it has written.
const LUA: &str = r##"
local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
print(fib(20), arg[1], ...)
print(pcall(error, "thrown"))
print(select("#", pcall(error)), pcall(error, nil))
local caught = 0
for i = 1, 20000 do
    local ok, value = pcall(function()
        local ok, inner = pcall(error, i)
        error({inner + 1})
    end)
    if not ok and value[1] == i + 1 then caught = caught + 1 end
end
print(caught)
local steps = coroutine.wrap(function(a)
    local b = coroutine.yield(a + 1)
    local ok, why = pcall(function() coroutine.yield(b * 2); error("in a coroutine", 0) end)
    error(why .. ", again", 0)
end)
print(steps(1), steps(21), pcall(steps))
print(xpcall(function() local none; return none.field end, function(why) return "handled: " .. why end))
do
    local closed <close> = setmetatable({}, {__close = function() print("closed") end})
end
local deep = 0
local function recurse() deep = deep + 1; return 1 + recurse() end
local ok, why = pcall(recurse)
print(ok, why:match("stack overflow"), deep > 1000)
local out = assert(io.open("out/lua.txt", "w"))
for i = 1, 1000 do out:write(i, "\t", i * i, "\n") end
out:close()
local sum = 0
for line in io.lines("out/lua.txt") do sum = sum + tonumber(line:match("\t(%d+)")) end
print(sum, os.rename("out/lua.txt", "out/squares.txt"), io.open("out/lua.txt"))
print(os.clock() >= 0, os.getenv("HOME"), io.read("l"))
error("the end")
"##;

/// Its memory grows by steps to more than half of its `memory_kib`: there is no quota for a second copy.
#[test]
fn a_program_can_use_most_of_its_memory_limit() {
    let script = "local t = {} for i = 1, 200 do t[i] = string.rep(i % 10, 1 << 20); collectgarbage() end \
                  print(#t, t[1]:byte(), t[199]:byte(-1))";
    let run = run(&disk(&[("grow.lua", script)]), "lua grow.lua; echo status $?\n");
    assert_eq!(run.succeeded(), "200\t49\t57\nstatus 0\n");
}

#[test]
fn lua_runs_scripts() {
    let disk = disk(&[("s.lua", LUA)]);
    let run = run(
        &disk,
        "echo typed | lua s.lua word; echo status $?\n\
         lua -e 'print(1 + 1)' -e 'print(_VERSION)'\n\
         echo 'print(\"from input\", #arg)' | lua\n\
         lua -e 'x = ='; echo status $?\n\
         lua none.lua; echo status $?\n",
    );
    let expected = "6765\tword\tword\nfalse\tthrown\n2\tfalse\tnil\n20000\n2\t42\tfalse\tin a coroutine, again\n\
        false\thandled: s.lua:21: attempt to index a nil value (local 'none')\nclosed\n\
        false\tstack overflow\ttrue\n333833500\ttrue\tnil\tout/lua.txt: No such file or directory\t44\n\
        true\tnil\ttyped\nstatus 1\n2\nLua 5.4\nfrom input\t0\nstatus 1\nstatus 1\n";
    assert_eq!(run.text(), expected, "{run}");
    assert!(run.errors.contains("lua: s.lua:36: the end") && run.errors.contains("stack traceback"), "{run}");
    let contents = disk.contents();
    let squares = fs::read_to_string(contents.path().join("out/squares.txt")).expect("the file is there");
    assert!(squares.starts_with("1\t1\n2\t4\n") && squares.ends_with("1000\t1000000\n"), "{squares}");
    disk.check();
}

/// A program sees the working folder as `.` and under its path, which are two descriptors of one folder.
#[test]
fn regression_a_file_moves_from_a_relative_to_an_absolute_path() {
    let disk = disk(&[("a.txt", "moved\n")]);
    let run = run(&disk, "lua -e 'print(os.rename(\"a.txt\", \"/fs/disk0/out/b.txt\"))'\ncat out/b.txt\n");
    assert_eq!(run.succeeded(), "true\nmoved\n");
    disk.check();
}

/// Numbers of any size, regular expressions, promises, generators, errors, files.
const JS: &str = r##"
import * as std from "qjs:std";
import * as os from "qjs:os";
import { twice } from "./lib.js";
const fact = n => n ? n * fact(n - 1n) : 1n;
console.log(fact(30n), twice(21), scriptArgs.slice(1).join());
class Shape { #size = 3; get area() { return this.#size ** 2 } static of() { return new this } }
console.log(Shape.of().area, [..."héllo"].reverse().join(""), /(?<year>\d{4})/u.exec("in 2026").groups.year);
function* evens() { for (let i = 0; ; i += 2) yield i }
const taken = []; for (const n of evens()) { if (n > 8) break; taken.push(n) }
console.log(JSON.stringify({ taken, map: [...new Map([[1, "a"]])], date: new Date(0).toISOString() }));
try { null.field } catch (error) { console.log(error instanceof TypeError, error.message) }
const file = std.open("out/js.txt", "w");
for (let i = 0; i < 1000; i++) file.puts(`${i} ${i.toString(2)}\n`);
file.close();
console.log(std.loadFile("out/js.txt").split("\n").length, os.readdir("out")[0].sort().join());
await new Promise(done => os.setTimeout(done, 20));
console.log((await Promise.all([1, Promise.resolve(2)])).length, std.in.getline());
throw new RangeError("the end");
"##;

#[test]
fn javascript_runs_programs() {
    let disk = disk(&[("s.js", JS), ("lib.js", "export const twice = n => n * 2;\n")]);
    let run = run(
        &disk,
        "echo typed | js s.js a b; echo status $?\n\
         js -e 'console.log([3, 1, 2].sort())'\n\
         js -e 'let x = ;'; echo status $?\n\
         js none.js; echo status $?\n",
    );
    let text = run.text();
    let expected = "265252859812191058636308480000000 42 a,b\n9 olléh 2026\n\
        {\"taken\":[0,2,4,6,8],\"map\":[[1,\"a\"]],\"date\":\"1970-01-01T00:00:00.000Z\"}\n\
        true cannot read property 'field' of null\n1001 .,..,js.txt\n2 typed\nstatus 1\n\
        1,2,3\nstatus 1\nstatus 1\n";
    assert_eq!(text, expected, "{run}");
    assert!(run.errors.contains("RangeError: the end"), "{run}");
    let contents = disk.contents();
    let file = fs::read_to_string(contents.path().join("out/js.txt")).expect("the file is there");
    assert!(file.ends_with("999 1111100111\n"), "{file}");
    disk.check();
}

/// What the Go program shows, counted here.
fn counted(root: &Path, most: usize) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let text = fs::read(entry.path()).expect("a file");
            for word in String::from_utf8_lossy(&text)
                .split(|letter: char| !letter.is_alphabetic())
                .filter(|one| !one.is_empty())
            {
                *counts.entry(word.to_lowercase()).or_default() += 1;
            }
        }
    }
    let mut all: Vec<(String, usize)> = counts.into_iter().collect();
    all.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    all.iter().take(most).map(|(word, times)| format!("{times:7} {word}\n")).collect()
}

#[test]
fn a_go_program_counts_words() {
    let source = tempfile::tempdir().expect("a folder");
    tree(source.path());
    let disk = Image::of(source.path(), Format::default());
    let run = run(
        &disk,
        "go-words -n 6 .\ngo-words -n 3 -o top.txt a d; echo status $?\ncat top.txt\ngo-words none; echo status $?\n",
    );
    let part = tempfile::tempdir().expect("a folder");
    for folder in ["a", "d"] {
        let copy = Command::new("cp").arg("-r").arg(source.path().join(folder)).arg(part.path()).status();
        assert!(copy.expect("cp runs").success());
    }
    let expected = format!("{}status 0\n{}status 1\n", counted(source.path(), 6), counted(part.path(), 3));
    assert_eq!(run.text(), expected, "{run}");
    assert!(run.errors.contains("go-words: lstat none"), "{run}");
    disk.check();
}
