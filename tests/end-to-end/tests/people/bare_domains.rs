//! Hardware domains: the papers' configurations, quarantine, and what is refused.

use std::path::PathBuf;
use std::process::Command;

use end_to_end::{
    BUILD_LIMIT, BareMachine, Doctor, Run, bare_system, boot_image, boot_kernel, finish, repository, reseal,
    reseal_system, sing, target,
};
use manifest_model::{Apart, Domain, Policy};

test_needs::needs!(Qemu);

const WORK: &str = "echo hello | cat | hash -a crc32; tree /fs/disk0; cat /fs/disk0/poems/tyger.txt; hello; greet you";

/// Number of hardware domains of a running system.
fn domains(run: &Run) -> u64 {
    run.counters()[0]["hardware domains"]
}

#[test]
fn programs_do_the_same_in_every_configuration() {
    let plain = BareMachine::new("microvm").run(WORK);
    plain.orderly();
    for (configuration, least) in
        [("sip-phys", 0), ("sip-page", 0), ("hip-r0", 1), ("hip-r0-s", 10), ("hip-r3", 1), ("hip-r3-s", 10)]
    {
        for processors in ["1", "4"] {
            let machine = BareMachine::new("microvm").with(&["--domains", configuration, "--smp", processors]);
            let run = machine.run(WORK);
            run.orderly();
            assert_eq!((&run.output, run.status), (&plain.output, plain.status), "with {configuration}:\n{run}");
            let count = domains(&machine.run("sysinfo"));
            assert!(count >= least && (least > 0 || count == 0), "{count} domains with {configuration}");
        }
    }
}

/// The domain of each process in the output of `ps`, by program; `-` for the kernel's own.
fn domain_of_each(run: &Run) -> Vec<(String, String)> {
    let text = run.text();
    let rows = text.lines().skip_while(|line| !line.starts_with("ID ")).skip(1);
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some((words.get(1)?.to_string(), words.last()?.to_string()))
    };
    rows.filter_map(row).collect()
}

#[test]
fn the_mixtures_of_the_papers_run_and_ps_shows_who_shares_a_domain() {
    for system in ["micro-kernel", "monolith", "strangers-apart"] {
        let machine = BareMachine::new("microvm").with(&["--system", system]);
        let run = finish(machine.command(Some(&format!("{WORK}; ps"))), system, BUILD_LIMIT);
        run.orderly();
        assert!(run.text().contains("Hello, you."), "{run}");
        let domains = domain_of_each(&run);
        let of = |program: &str| {
            let found = domains.iter().find(|(name, _)| name == program);
            found.unwrap_or_else(|| panic!("{program}: {run}")).1.as_str()
        };
        match system {
            "micro-kernel" => {
                let mut apart: Vec<&str> = domains.iter().skip(1).map(|(_, domain)| domain.as_str()).collect();
                let count = apart.len();
                apart.sort_unstable();
                apart.dedup();
                assert!(apart.len() == count && !apart.contains(&"-"), "{run}");
            }
            "monolith" => {
                assert!(of("shell") != "-" && of("shell") == of("ps"), "{run}");
                assert!(["directory", "virtio-blk", "ext2-fs"].iter().all(|program| of(program) == "-"), "{run}");
            }
            // `ps` has no column of domains where nobody is in one.
            _ => assert!(!run.text().contains("DOMAIN"), "{run}"),
        }
    }
}

/// Returns the image of the default system in a configuration, which has been run.
fn image_of(configuration: &str) -> PathBuf {
    let begin = format!("bare-{configuration}-");
    let folder = std::fs::read_dir(target().join("sing/systems")).expect("the folder of systems");
    let paths = folder.map(|entry| entry.expect("an entry").path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy();
        let digest = name.strip_prefix(&begin).and_then(|rest| rest.strip_suffix(".system"));
        digest.is_some_and(|digest| digest.len() == 16)
    };
    let newest = |path: &PathBuf| path.metadata().and_then(|metadata| metadata.modified()).expect("a time");
    paths.filter(is_it).max_by_key(newest).expect("it has been built")
}

#[test]
fn programs_in_domains_are_the_same_to_the_byte() {
    BareMachine::new("microvm").with(&["--domains", "hip-r3-s"]).run("true").orderly();
    let images = [bare_system(), image_of("hip-r3-s")].map(|path| std::fs::read(path).expect("a system image"));
    let [plain, apart] = images.each_ref().map(|image| package_check::verify_system(image).expect("a system"));
    assert!(plain.manifest.domains.is_empty() && apart.manifest.domains.len() == 1);
    assert_eq!(plain.packages, apart.packages);
}

/// A domain for a program, or for all.
fn apart(who: &[&str], each: bool) -> Apart {
    let who = who.iter().map(|&who| who.into()).collect();
    Apart { name: "apart".into(), kind: Domain::Ring3, who, categories: Vec::new(), each }
}

#[test]
fn an_unsigned_program_runs_in_a_domain_of_its_own_and_nowhere_else() {
    let system = std::fs::read(bare_system()).expect("the system image");
    let unsigned = reseal(&system, "echo", &Doctor::Unsigned);
    let run = |domains: &[Apart]| {
        let image = reseal_system(&unsigned, &|system| {
            system.trust.policy = Policy::QuarantineUnsigned;
            system.domains = domains.to_vec();
        });
        boot_kernel(&boot_image(&image, "echo it runs"), 256)
    };
    for refused in [run(&[]), run(&[apart(&["echo.singularity"], false)]), run(&[apart(&["cat.singularity"], true)])] {
        assert!(!refused.errors.contains("it runs") && !refused.text().contains("it runs"), "{refused}");
        let all = format!("{}{}", refused.text(), refused.errors);
        assert!(all.contains("in quarantine") && all.contains("hardware domain"), "{refused}");
    }
    let runs = run(&[apart(&["echo.singularity"], true)]);
    assert!(format!("{}{}", runs.text(), runs.errors).contains("it runs"), "{runs}");
}

#[test]
fn a_processor_that_lacks_something_is_told_of() {
    let words = ["--domains", "hip-r3-s", "--qemu=-cpu", "--qemu=max,pcid=off,smep=off,smap=off,umip=off"];
    let run = BareMachine::new("microvm").with(&words).run(WORK);
    assert_eq!(run.output, BareMachine::new("microvm").run(WORK).output, "{run}");
    for lacking in ["PCID", "SMEP", "SMAP", "UMIP"] {
        assert!(run.errors.contains(&format!("(no {lacking})")), "{lacking} is not told of:\n{run}");
    }
}

#[track_caller]
fn asked(words: &[&str]) -> Run {
    let mut command = Command::new(sing());
    command.args(words).current_dir(repository());
    finish(command, &words.join(" "), BUILD_LIMIT)
}

#[test]
fn a_configuration_that_does_not_exist_is_refused() {
    asked(&["run", "--machine", "qemu", "--domains", "hip-r9", "-c", "true"]).refused(&["hip-r9"]);
}

#[test]
fn a_base_of_another_folder_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, "[system]\nname = \"mine\"\nbase = \"bare\"\n").expect("a file can be written");
    let path = path.to_str().expect("its name is UTF-8");
    let words = ["run", "--machine", "qemu", "--domains", "hip-r3", "--system", path, "-c", "true"];
    asked(&words).refused(&["is in no `systems` folder"]);
}
