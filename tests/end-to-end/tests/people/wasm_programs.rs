//! WebAssembly programs as people use them: commands of the shell, and modules given bare.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use end_to_end::{Format, Image, LIMIT, Machine, Run, built_system, finish, free_port, repository, sing};

test_needs::needs!(E2fsprogs);

/// A module of the repository.
const SQLITE: &str = "ports/sqlite/sqlite.wasm";
/// Time to compile a module for the first time on a busy host.
const BUILD: Duration = Duration::from_secs(300);

/// Runs a bare module by the tool.
#[track_caller]
fn bare(module: &str, disk: &Image, words: &[&str]) -> Run {
    // Builds the compiler in advance, so that it does not count against the timeout.
    built_system("wasm");
    let mut command = Command::new(sing());
    command.arg("run").arg("--disk").arg(disk.path()).arg("--wasm").arg(module).args(words).current_dir(repository());
    finish(command, &format!("sing run --wasm {module} {words:?}"), BUILD)
}

/// A disk with these folders.
fn disk(folders: &[&str]) -> Image {
    let source = tempfile::tempdir().expect("a folder");
    for folder in folders {
        std::fs::create_dir(source.path().join(folder)).expect("a folder");
    }
    Image::of(source.path(), Format::default())
}

#[test]
fn a_bare_module_runs_with_its_words_and_gives_its_status() {
    let disk = disk(&["in", "out"]);
    let hello = bare("examples/wasm-hello/wasm-hello.wasm", &disk, &[]);
    assert_eq!(hello.succeeded(), "hello from wasm\n");
    let run =
        bare(SQLITE, &disk, &["--dir", "/fs/disk0/in", "--", "--separator", ",", "/fs/disk0/in/x.db", "select 1, 2"]);
    assert_eq!(run.succeeded(), "1,2\n");
    let no_words = bare(SQLITE, &disk, &[]);
    assert_eq!(no_words.status, Some(2), "{no_words}");
    no_words.refused(&["usage: sqlite"]);
    let missing = bare(SQLITE, &disk, &["--dir", "/fs/disk0/none", "--", "x"]);
    missing.refused(&["/fs/disk0/none", "not found"]);
}

#[test]
fn a_program_does_not_leave_the_folders_it_was_given() {
    let disk = disk(&["in", "out"]);
    disk.debugfs("symlink /in/up ../out");
    disk.debugfs("symlink /in/root /out");
    for path in ["/fs/disk0/out/x.db", "/fs/disk0/in/../out/x.db", "/fs/disk0/in/up/x.db", "/fs/disk0/in/root/x.db"] {
        let run = bare(SQLITE, &disk, &["--dir", "/fs/disk0/in", "--", path, "create table t(a)"]);
        run.refused(&[path, "unable to open database file"]);
    }
    let inside = bare(SQLITE, &disk, &["--dir", "/fs/disk0/in", "--", "/fs/disk0/in/x.db", "create table t(a)"]);
    inside.succeeded();
    let contents = disk.contents();
    assert!(contents.path().join("in/x.db").is_file(), "what is allowed works");
    assert_eq!(std::fs::read_dir(contents.path().join("out")).expect("a folder").count(), 0, "something got out");
}

#[test]
fn a_file_that_is_no_module_is_refused() {
    let disk = disk(&[]);
    let text = bare("examples/wasm-hello/wasm-hello.wat", &disk, &[]);
    text.refused(&["wasm-hello.wat is not a WebAssembly module"]);
    let twice = bare(SQLITE, &disk, &["--wasm", SQLITE]);
    twice.refused(&["two modules would be the program"]);
}

#[test]
fn a_wasm_program_is_a_command_of_the_shell() {
    let disk = disk(&[]);
    let run = Machine::new().system(built_system("wasm")).disk(disk.path()).run(
        "cd /fs/disk0\n\
         sqlite a.db 'create table t(a, b); insert into t values (1, 2), (3, 4)'\n\
         echo 'select * from t;' | sqlite --header a.db | cat\n\
         sqlite --no-working-folder a.db 'select 1'; echo status $?\n\
         sqlite --nonsense; echo status $?\n\
         sqlite --help\n\
         wasm-hello; echo status $?\n",
    );
    run.orderly();
    let text = run.text();
    assert!(text.starts_with("a|b\n1|2\n3|4\nstatus 1\nstatus 2\n"), "{run}");
    assert!(text.contains("--header") && text.contains("names of the columns"), "{run}");
    assert!(text.ends_with("hello from wasm\nstatus 0\n"), "{run}");
    disk.check();
}

/// Sends these bytes, and returns what comes back until the other end has finished.
fn exchange(mut stream: TcpStream, sent: &[u8]) -> Vec<u8> {
    let mut sending = stream.try_clone().expect("a second handle");
    let sent = sent.to_vec();
    let sender = std::thread::spawn(move || {
        sending.write_all(&sent).expect("bytes are taken");
        sending.shutdown(Shutdown::Write).expect("the end is sent");
    });
    let mut received = Vec::new();
    stream.read_to_end(&mut received).expect("bytes come back");
    sender.join().expect("all was sent");
    received
}

#[test]
fn a_program_serves_the_sockets_that_it_is_given() {
    built_system("wasm");
    let outside = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (port, other) = (free_port(), outside.local_addr().expect("an address"));
    let mut command = Command::new(sing());
    command.args(["run", "--wasm", "examples/wasm-tcp/wasm-tcp.wasm", "--tcp-connect", &other.to_string()]);
    command.args(["--tcp-listen", &format!("127.0.0.1:{port}")]).current_dir(repository());
    let program = std::thread::spawn(move || finish(command, "sing run --wasm wasm-tcp.wasm", BUILD));
    let (mut given, _) = outside.accept().expect("it is connected");
    let mut greeting = [0; 6];
    given.read_exact(&mut greeting).expect("a greeting");
    assert_eq!(&greeting, b"hello\n");
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let connect = || TcpStream::connect(address).expect("it listens");
    // More than any buffer holds, while others come and go.
    let long: Vec<u8> = (0..2_000_000u32).map(|number| b'a' + (number % 26) as u8).collect();
    let clients: Vec<_> = (0..40).map(|_| connect()).collect();
    assert_eq!(exchange(connect(), &long), long.to_ascii_uppercase());
    for (number, client) in clients.into_iter().enumerate() {
        let text = format!("client {number}");
        assert_eq!(exchange(client, text.as_bytes()), text.to_ascii_uppercase().as_bytes());
    }
    // One that is reset is an error of that one.
    rustix::net::sockopt::set_socket_linger(&given, Some(Duration::ZERO)).expect("an option");
    drop(given);
    assert_eq!(exchange(connect(), b"x"), b"X");
    connect().write_all(b"quit\n").expect("bytes are taken");
    let run = program.join().expect("the tool ends");
    let text = run.succeeded();
    assert!(text.starts_with("serving 1 listeners and 1 connections\n"), "{run}");
}

#[test]
fn a_program_has_no_sockets_but_those_that_it_is_given() {
    let disk = disk(&[]);
    let module = "examples/wasm-tcp/wasm-tcp.wasm";
    assert_eq!(bare(module, &disk, &[]).succeeded(), "serving 0 listeners and 0 connections\n");
    for wrong in ["127.0.0.1", "127.0.0.1:0", "localhost:80", "[zz]:80"] {
        bare(module, &disk, &["--tcp-listen", wrong]).refused(&[&format!("--tcp-listen {wrong}"), "127.0.0.1:8080"]);
    }
    bare(module, &disk, &["--tcp-listen", "192.0.2.1:8080"])
        .refused(&["--tcp-listen 192.0.2.1:8080", "not one of this machine"]);
    let refused = bare(module, &disk, &["--tcp-connect", &format!("127.0.0.1:{}", free_port())]);
    refused.refused(&["--tcp-connect 127.0.0.1", "connection refused"]);
    // Without the tool's rules, the system's hold.
    bare(module, &disk, &["-c", "wasm-wasm-tcp --tcp-listen 127.0.0.1:8080"]).refused(&["may not use that address"]);
}

/// Runs a script in a folder with a database `a.db` of one table `t`. `hold SQL TIME` writes the SQL, and `commit` after a
/// time; `add N` writes SQL that adds `N` rows, each in a transaction; `locked` prints its name if the database cannot be
/// written to.
#[track_caller]
fn with_database(disk: &Image, script: &str) -> Run {
    let script = format!(
        "function hold\n\
         echo $1\n\
         sleep $2\n\
         echo 'commit;'\n\
         end\n\
         function add\n\
         echo 'pragma busy_timeout = 100000;'\n\
         i=0; while test $i '<' $1; do echo 'insert into t values (1);'; i=$((i + 1)); end\n\
         end\n\
         function locked\n\
         sqlite a.db 'pragma busy_timeout = 0; begin immediate; rollback' || echo locked\n\
         end\n\
         cd /fs/disk0\n\
         sqlite a.db 'create table t(a)'; sync\n\
         {script}"
    );
    let limit = LIMIT + Duration::from_secs(60);
    let run = Machine::new().system(built_system("wasm")).disk(disk.path()).limit(limit).run(&script);
    run.orderly();
    run
}

#[test]
fn a_lock_of_a_database_ends_with_its_program() {
    let disk = disk(&[]);
    let run = with_database(
        &disk,
        "hold 'begin immediate; insert into t values (7);' 100s | sqlite a.db &\n\
         sleep 1s; locked; sqlite a.db 'select count(*) from t'\n\
         kill sqlite; locked; sqlite a.db 'select count(*) from t'; ls\n\
         hold 'begin; select count(*) from t;' 100s | sqlite a.db &\n\
         sleep 1s; sqlite a.db 'pragma busy_timeout = 0; insert into t values (8)' || echo read\n\
         kill sqlite; sqlite a.db 'insert into t values (9); select a from t'\n",
    );
    assert_eq!(run.text(), "0\nlocked\n0\n0\n0\na.db\na.db-journal\nlost+found/\n0\n0\nread\n9\n", "{run}");
    assert_eq!(run.errors.matches("database is locked\n").count(), 2, "{run}");
    assert_eq!(run.errors.matches("another program uses it\n").count(), 2, "{run}");
    disk.check();
}

#[test]
fn programs_take_turns_at_a_database() {
    let disk = disk(&[]);
    let run = with_database(
        &disk,
        "add 40 | sqlite a.db &\nadd 40 | sqlite a.db &\nadd 40 | sqlite a.db &\nadd 40 | sqlite a.db\n\
         wait\nsqlite a.db 'select count(*) from t; pragma integrity_check'\n",
    );
    assert_eq!(run.text(), format!("{}160\nok\n", "100000\n".repeat(4)), "{run}");
    disk.check();
}

/// A server that was started anew knows nothing of locks: whoever had one can do nothing with the file any more.
#[test]
fn a_lock_that_was_lost_with_its_server_ends_the_transaction() {
    let disk = disk(&[]);
    let run = with_database(
        &disk,
        "hold 'begin immediate; insert into t values (7);' 2s | sqlite a.db &\n\
         sleep 1s; locked; kill ext2-fs\n\
         sqlite a.db 'insert into t values (8)'; sync\n\
         hold 'begin immediate; insert into t values (9);' 2s | sqlite a.db &\n\
         wait; sqlite a.db 'select a from t; pragma integrity_check'; ls\n",
    );
    assert_eq!(run.text(), "0\nlocked\n8\n9\nok\na.db\nlost+found/\n", "{run}");
    assert!(run.errors.contains("disk I/O error"), "{run}");
    disk.check();
}

/// Money moves between accounts, and each transaction is counted twice: what a kill leaves must add up.
const ACCOUNTS: &str = "create table account(id integer primary key, balance integer not null);\
    insert into account values (1, 5000), (2, 5000), (3, 0);\
    create table log(number integer primary key, amount integer);\
    create table meta(count integer); insert into meta values (0)";
const CHECK: &str = "pragma integrity_check;\
    select 'sum', sum(balance) from account;\
    select 'counted', count, count - (select count(*) from log) from meta";

/// Transactions, more than there is time for.
fn transactions(path: &Path) {
    let mut text = String::new();
    for number in 0..20_000 {
        let (from, to, amount) = (number % 3 + 1, (number + 1) % 3 + 1, number % 17);
        let _ = writeln!(
            text,
            "begin; update account set balance = balance - {amount} where id = {from}; \
             update account set balance = balance + {amount} where id = {to}; \
             insert into log(amount) values ({amount}); update meta set count = count + 1; commit;"
        );
    }
    std::fs::write(path, text).expect("a file");
}

#[track_caller]
fn sqlite_is_killed(rounds: u64) {
    let source = tempfile::tempdir().expect("a folder");
    transactions(&source.path().join("work.sql"));
    let disk = Image::of(source.path(), Format::default());
    let mut script = format!(
        "function round\n\
         sqlite a.db < work.sql &\n\
         sleep $1\n\
         kill sqlite\n\
         wait\n\
         ls a.db-journal && echo interrupted\n\
         sqlite a.db \"{CHECK}\" || echo failed\n\
         end\n\
         cd /fs/disk0\n\
         sqlite a.db '{ACCOUNTS}'\n"
    );
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..rounds {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let _ = writeln!(script, "round {}ms", 20 + (seed >> 33) % 300);
    }
    let limit = LIMIT + Duration::from_secs(rounds);
    let run = Machine::new().system(built_system("wasm")).disk(disk.path()).limit(limit).run(&script);
    run.orderly();
    let text = run.text();
    let lines = |line: &str| text.lines().filter(|found| *found == line).count() as u64;
    assert_eq!((lines("ok"), lines("sum|10000"), lines("failed")), (rounds, rounds, 0), "{run}");
    let counted: Vec<u64> =
        text.lines().filter_map(|line| line.strip_prefix("counted|")?.strip_suffix("|0")?.parse().ok()).collect();
    assert_eq!(counted.len() as u64, rounds, "the log and its count differ:\n{run}");
    assert!(
        counted.is_sorted() && counted.last() > Some(&0),
        "nothing was written between the kills: {counted:?}\n{run}"
    );
    assert!(lines("interrupted") > 0, "no transaction was interrupted:\n{run}");
    disk.check();
}

#[test]
fn a_database_survives_the_end_of_its_program() {
    sqlite_is_killed(10);
}

#[test]
#[ignore = "long"]
fn a_database_survives_the_end_of_its_program_many_times() {
    sqlite_is_killed(300);
}
