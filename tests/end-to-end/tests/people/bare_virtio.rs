//! Virtio devices of bare machines other than disks: entropy, network, console.

use end_to_end::{BareMachine, KINDS, repository};

test_needs::needs!(Qemu);

#[test]
fn random_bytes_differ() {
    for kind in KINDS {
        let run = BareMachine::new(kind).run("random 32; random 32; random 0; random 65536 | hash; random 65537");
        let text = run.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{run}");
        assert_ne!(lines[0], lines[1], "{run}");
        let is_hexadecimal = |line: &str| line.len() == 64 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(lines[..2].iter().all(|line| is_hexadecimal(line)), "{run}");
        assert!(run.errors.starts_with("random: 65537: ") && run.status == Some(2), "{run}");
    }
}

#[test]
fn somebody_on_the_link_answers() {
    for kind in KINDS {
        // The interface has one client at a time.
        let commands = "stop net-stack; sleep 1; nic; nic --arp 10.0.2.2; nic --arp 10.0.2.200 --wait 200 || echo nobody; nic --arp here";
        let run = BareMachine::new(kind).with(&["--net"]).run(commands);
        let expected = "address 52:54:00:12:34:56\nlink    up\nmtu     1500\n\
                        10.0.2.2 is at 52:55:0a:00:02:02\nnobody\n";
        assert_eq!(run.text(), expected, "{run}");
        assert!(run.errors.contains("10.0.2.200: no ARP reply on /dev/net0"), "{run}");
        assert!(run.errors.contains("here: not an IPv4 address") && run.status == Some(2), "{run}");
    }
}

#[test]
fn without_such_devices_one_sentence_says_so() {
    let run = BareMachine::new("microvm").run("nic");
    assert!(run.errors.starts_with("nic: /dev/net0: not found"), "{run}");
    assert_eq!((run.errors.lines().count(), run.status), (1, Some(1)), "{run}");
}

/// The bare system with a virtio console instead of the serial line.
fn with_virtio_console(text: &str) -> String {
    let instances: Vec<&str> = text.split("[[program]]\n").collect();
    let kept = instances.into_iter().filter(|instance| !instance.starts_with("name = \"serial-console\""));
    let console = "name = \"virtio-console\"\ninstance = \"console\"\nafter = [\"virtio-mmio-bus\", \"pci-bus\"]\n\
                   devices = { port = \"virtio-console0\" }\n\n";
    let changed = kept.map(|instance| match instance.starts_with("name = \"virtio-console\"") {
        true => console.to_string(),
        false => instance.to_string(),
    });
    changed.collect::<Vec<String>>().join("[[program]]\n")
}

#[test]
fn a_virtio_console_serves_the_shell() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let systems = repository().join("systems");
    let common = std::fs::read_to_string(systems.join("common.toml")).expect("the common part");
    let bare = std::fs::read_to_string(systems.join("bare.toml")).expect("the bare system");
    std::fs::write(folder.path().join("common.toml"), common).expect("a file can be written");
    let system = folder.path().join("virtio.toml");
    std::fs::write(&system, with_virtio_console(&bare)).expect("a file can be written");
    for (kind, bus) in KINDS.into_iter().zip(["virtio-serial-device", "virtio-serial-pci,disable-legacy=on"]) {
        let output = folder.path().join(kind);
        let machine = BareMachine::new(kind).with(&[
            "--system",
            &system.display().to_string(),
            "--qemu=-chardev",
            &format!("--qemu=file,id=port,path={}", output.display()),
            "--qemu=-device",
            &format!("--qemu={bus}"),
            "--qemu=-device",
            "--qemu=virtconsole,chardev=port",
        ]);
        let run = machine.run("echo hello; cat /fs/disk0/data/bytes.bin; exit 5");
        let written = std::fs::read(&output).expect("QEMU has written what the console said");
        let expected: Vec<u8> = b"hello\n".iter().copied().chain(0..=255).collect();
        assert_eq!(written, expected, "{run}");
        assert_eq!((run.status, run.text().as_str()), (Some(5), ""), "{run}");
    }
}
