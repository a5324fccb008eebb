//! Programs in C: what their bugs do to others, and where they do not run.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use end_to_end::{
    BUILD_LIMIT, BareMachine, Run, boot_image, boot_kernel, finish, repository, reseal_system, sing, target,
};
use manifest_model::Domain;

test_needs::needs!(Qemu);

/// Harmless data, and what comes of it.
const GOOD: (&str, &str) = ("0268656C", "hel");

fn decoder(processors: &str) -> BareMachine {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let machine = BareMachine::new("microvm").with(&["--system", "decoder"]);
        finish(machine.command(Some("true")), "true", BUILD_LIMIT).orderly();
    });
    BareMachine::new("microvm").with(&["--system", "decoder", "--smp", processors])
}

/// Overflows by a little and by much: over the return address of the function, over the thread block at the end of the
/// stack, and beyond the stack.
const HOSTILE: [&str; 5] = ["8141x2", "8141x4", "8100x3", "81FFx64", "7F41x2000"];

#[test]
fn a_buffer_overflow_in_c_ends_its_own_process_and_nothing_else() {
    let mut words = vec![GOOD.0];
    for hostile in HOSTILE {
        words.extend([hostile, GOOD.0]);
    }
    let looks = Run::LOOKS;
    let commands = format!("decode {0}; {looks}; decode {1}; decode {1}; {looks}; decode {0}", GOOD.0, words.join(" "));
    for processors in ["1", "4"] {
        only_the_decoders_end(&decoder(processors).run(&commands));
    }
    let mut hosted = Command::new(sing());
    hosted.args(["run", "--system", "decoder-hosted", "-c", &commands]).current_dir(repository());
    only_the_decoders_end(&finish(hosted, &commands, BUILD_LIMIT));
}

fn only_the_decoders_end(run: &Run) {
    run.orderly();
    let text = run.text();
    assert_eq!(text.matches(&format!("{}: {}\n", GOOD.0, GOOD.1)).count(), 2 * (HOSTILE.len() + 1) + 2, "{run}");
    for hostile in HOSTILE {
        let begin = format!("{hostile}: the decoder ended: ");
        let told: Vec<&str> = text.lines().filter(|line| line.starts_with(&begin)).collect();
        assert_eq!(told.len(), 2, "{hostile}: {run}");
        assert!(told.iter().all(|line| line.ends_with(" bytes came home") && !line.contains("; 0 bytes")), "{run}");
    }
    let counters = run.steady_counters();
    for name in ["hardware domains", "blocks", "channels", "processes", "threads"] {
        let [before, after] = [0, 1].map(|index: usize| counters[index].get(name));
        assert_eq!(before, after, "{name}: {run}");
    }
}

#[test]
fn data_that_ends_early_is_malformed_and_kills_nobody() {
    let run = decoder("1").run("decode 00 81 7F41x3 80 0268656C");
    run.orderly();
    let expected =
        ["00: malformed at byte 0", "81: malformed at byte 0", "7F41x3: malformed at byte 0", "80: ", "0268656C: hel"];
    assert_eq!(run.text().lines().collect::<Vec<_>>(), expected, "{run}");
}

#[test]
fn unsafe_code_runs_in_a_hardware_domain_of_its_own_and_nowhere_else() {
    decoder("1").run("true").orderly();
    let system = std::fs::read(target().join("sing/systems/decoder.system")).expect("the system image");
    let run = |domain: Option<(Domain, bool)>| {
        let image = reseal_system(&system, &|system| match domain {
            Some((kind, each)) => (system.domains[0].kind, system.domains[0].each) = (kind, each),
            None => system.domains.clear(),
        });
        boot_kernel(&boot_image(&image, "decode 0268656C"), 256)
    };
    let all = |run: &Run| format!("{}{}", run.text(), run.errors);
    for refused in [None, Some((Domain::Ring3, false)), Some((Domain::Ring0, true))].map(run) {
        assert!(all(&refused).contains("it is unsafe code"), "{refused}");
        assert!(!all(&refused).contains("0268656C: hel"), "{refused}");
    }
    let runs = run(Some((Domain::Ring3, true)));
    assert!(all(&runs).contains("0268656C: hel"), "{runs}");
}

#[test]
fn a_system_without_a_domain_for_unsafe_code_is_not_built() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    for (name, domain) in [
        ("without", ""),
        ("shared", "\n[[domain]]\nname = \"shared\"\nkind = \"ring-3\"\nwho = [\"careless-decoder.*\"]\n"),
    ] {
        let path = folder.path().join(name).with_extension("toml");
        let text = format!(
            "[system]\nname = \"{name}\"\nbase = \"bare\"\ninstalled = [\"decode\", \"careless-decoder\"]\n{domain}"
        );
        std::fs::write(&path, text).expect("a file can be written");
        let mut command = Command::new(sing());
        command.arg("check").arg(&path).current_dir(repository());
        let run = finish(command, "check", BUILD_LIMIT);
        assert_ne!(run.status, Some(0), "{run}");
        let parts = ["I228", "`careless-decoder` is unsafe code", "each = true"];
        assert!(parts.iter().all(|part| run.errors.contains(part)), "{run}");
    }
}

/// A file compressed by the host.
fn gzip(text: &[u8]) -> Vec<u8> {
    let mut gzip = Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("gzip");
    let mut input = gzip.stdin.take().expect("a pipe");
    std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(text).expect("gzip reads"));
        gzip.wait_with_output().expect("gzip ends").stdout
    })
}

#[test]
fn zlib_decompresses_in_a_domain_of_its_own_and_says_where_a_stream_is_malformed() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let text = std::fs::read(repository().join("README.md")).expect("the README");
    let large: Vec<u8> =
        (0..400_000_u32).flat_map(|number| (number.wrapping_mul(0x9e37_79b9) >> 20).to_le_bytes()).collect();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).expect("a file");
    let whole = gzip(&text);
    write("text", &text);
    write("large", &large);
    write("text.gz", &whole);
    write("large.gz", &gzip(&large));
    write("cut.gz", &whole[..1000]);
    let mut changed = whole.clone();
    changed[500..510].fill(0xff);
    write("changed.gz", &changed);
    decoder("1").run("true").orderly();
    let share = format!("here={}", folder.path().display());
    let sum = |name: &str| format!("cat /fs/here/{name} | hash -a crc32; gunzip /fs/here/{name}.gz | hash -a crc32");
    let looks = Run::LOOKS;
    let commands = format!(
        "{looks}; {}; {}; gunzip /fs/here/cut.gz | wc; gunzip /fs/here/changed.gz | wc; gunzip /fs/here/text | wc; {looks}",
        sum("text"),
        sum("large")
    );
    let run = decoder("1").with(&["--folder", &share]).run(&commands);
    let out = run.text();
    let sums: Vec<&str> = out.lines().filter(|line| line.ends_with("  -")).collect();
    assert!(sums.len() == 4 && sums[0] == sums[1] && sums[2] == sums[3] && sums[0] != sums[2], "{run}");
    for told in [
        "cut.gz: it ends after 1000 bytes, within the stream",
        "changed.gz: it is malformed before byte ",
        "text: it is malformed before byte ",
    ] {
        assert!(out.contains(told) || run.errors.contains(told), "{told}: {run}");
    }
    let counters = run.steady_counters();
    assert_eq!(counters[0].get("hardware domains"), counters[1].get("hardware domains"), "{run}");
}
