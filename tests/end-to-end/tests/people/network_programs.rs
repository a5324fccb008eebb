//! Network programs with typical input, on the host's network.

use end_to_end::{Machine, Run};

#[track_caller]
fn run(commands: &str) -> Run {
    Machine::new().run(commands)
}

#[test]
fn what_there_is_is_shown() {
    let shown =
        run("ipconfig; echo ===; route; echo ===; netstat; echo ===; netstat --counters; echo ===; dns 127.0.0.1");
    let text = shown.succeeded();
    let parts: Vec<&str> = text.split("===\n").collect();
    assert!(parts[0].starts_with("lo\n") && parts[0].contains("127.0.0.1/8"), "{text}");
    assert!(parts[1].starts_with("NETWORK "), "{text}");
    assert!(parts[2].starts_with("PROTOCOL "), "{text}");
    assert!(parts[3].contains("connections made"), "{text}");
    assert_eq!(parts[4], "127.0.0.1\n");
    let one = run("ipconfig lo").succeeded();
    assert!(one.contains("127.0.0.1/8") && !one.contains("name servers"), "{one}");
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    for (commands, parts) in [
        ("ipconfig nope", ["ipconfig: nope", "no such interface"]),
        ("ipconfig lo --add x/8", ["ipconfig: x/8", "not an address"]),
        ("ipconfig lo --add 192.0.2.9", ["192.0.2.9: the prefix length is missing", "192.0.2.5/24"]),
        ("ipconfig lo --add 1.2.3.4/33", ["1.2.3.4/33", "at most 32"]),
        ("ipconfig lo --dhcp maybe", ["maybe", "--dhcp on"]),
        ("ipconfig --dns 1.1.1", ["1.1.1", "not an address"]),
        ("ipconfig lo --add 192.0.2.9/24", ["192.0.2.9/24", "on the host"]),
        ("route sub", ["`sub`", "route add NETWORK GATEWAY"]),
        ("route add default 300.1.1.1", ["300.1.1.1", "not an address"]),
        ("route add 1.2.3.0/24 --interface nope", ["nope", "interface"]),
        ("netstat eth0", ["eth0", "one word too many"]),
        ("dns", ["names", "usage"]),
        ("dns 'a b'", ["`a b`", "neither an address nor a name"]),
        ("dns ''", ["``", "no host is given"]),
        ("dns a:80", ["`a:80`", "neither an address nor a name"]),
        ("dns no-such-name.invalid", ["no-such-name.invalid", "name"]),
        ("ping 'a b'", ["`a b`", "neither an address nor a name"]),
        ("ping localhost:80", ["`localhost:80`", "neither an address nor a name"]),
        ("ping localhost --count -1", ["--count -1", "from 0"]),
        ("ping localhost --size 99999", ["--size 99999", "65487"]),
        ("ping ::1 --ipv4", ["::1", "no such address"]),
    ] {
        run(commands).refused(&parts);
    }
    // Brackets, needed for an address with a port, are accepted.
    assert_eq!(run("dns '[::1]'").succeeded(), "::1\n");
    // An unresolvable name does not affect the others.
    let both = run("dns nope.invalid 127.0.0.1; echo $?");
    assert_eq!(both.text(), "127.0.0.1  127.0.0.1\n1\n", "{both}");
}
