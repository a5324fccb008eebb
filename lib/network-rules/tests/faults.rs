//! Each error in a rule has its own code and remedy.

use network_rules::{MAX_BYTES, MAX_RULES, NamedPort, Rules};

const PORTS: &[NamedPort<'_>] = &[NamedPort { name: "web", port: 8080 }, NamedPort { name: "web-2", port: 8081 }];

fn wrong(lines: &[&str]) -> String {
    match Rules::parse(lines.iter().copied(), PORTS) {
        Ok(_) => panic!("{lines:?} are rules"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn each_fault_has_its_own_code() {
    let long = format!("allow connect {}.singularity *", "a".repeat(MAX_BYTES));
    let table: &[(&str, &str)] = &[
        ("", "N001"),
        ("   ", "N001"),
        (&long, "N002"),
        ("allow connect\t**\t*", "N003"),
        ("allow connect ** *\nallow listen ** *", "N003"),
        ("permit connect ** *", "N004"),
        ("ALLOW connect ** *", "N004"),
        ("allow", "N005"),
        ("deny ", "N005"),
        ("allow send ** *", "N006"),
        ("allow connect,listen ** *", "N006"),
        ("allow connect", "N007"),
        ("allow resolve", "N007"),
        ("allow configure ", "N007"),
        ("allow connect FETCH.singularity *", "N008"),
        ("allow connect (a|b *", "N008"),
        ("allow connect a|.singularity| *", "N008"),
        ("allow resolve x.y@Admin", "N008"),
        ("allow connect **", "N009"),
        ("allow ping ..ping.singularity", "N009"),
        ("allow connect a.b c.d *", "N010"),
        ("allow connect ** 192.0.2.1 80", "N010"),
        ("allow resolve ** *", "N011"),
        ("deny configure ** 192.0.2.1", "N011"),
        ("allow connect ** **", "N012"),
        ("allow connect ** */8", "N012"),
        ("allow connect ** example.org:80", "N013"),
        ("allow connect ** 192.0.2:80", "N013"),
        ("allow connect ** 192.0.2.256", "N013"),
        ("allow connect ** 192.0.02.1", "N013"),
        ("allow connect ** :80", "N013"),
        ("allow connect ** [2001:db8::g]", "N013"),
        ("allow connect ** [fe80::1%2]", "N013"),
        ("allow connect ** 2001:db8::1", "N014"),
        ("allow connect ** 2001:db8::/32", "N014"),
        ("allow connect ** [2001:db8::1:80", "N015"),
        ("allow connect ** [192.0.2.1]:80", "N016"),
        ("allow connect ** [::ffff:192.0.2.1]", "N017"),
        ("allow connect ** 0.0.0.0", "N018"),
        ("allow listen ** [::]:80", "N018"),
        ("allow connect ** 192.0.2.0/33", "N019"),
        ("allow connect ** 192.0.2.0/", "N019"),
        ("allow connect ** 192.0.2.0/+8", "N019"),
        ("allow connect ** [2001:db8::]/129", "N019"),
        ("allow connect ** 192.0.2.7/24", "N020"),
        ("allow connect ** 192.0.2.7/0", "N020"),
        ("allow connect ** [2001:db8::1]/64", "N020"),
        ("allow connect ** [2001:db8::1]80", "N021"),
        ("allow connect ** *:", "N022"),
        ("allow connect ** *:65536", "N022"),
        ("allow connect ** *:80-", "N022"),
        ("allow connect ** *:99999999999999999999", "N022"),
        ("allow connect ** *:+80", "N023"),
        ("allow connect ** *:http", "N023"),
        ("allow connect ** *:80-90-100", "N023"),
        ("allow connect ** *:90-80", "N024"),
        ("allow ping ** *:80", "N025"),
    ];
    for (rule, code) in table {
        let text = wrong(&[rule]);
        assert!(text.starts_with(&format!("{code}: network rule 1 (`")), "`{rule}`: {text}");
        assert!(text.contains("; ") || text.contains(": "), "no remedy: {text}");
    }
    let many = vec!["allow connect ** *"; MAX_RULES + 1];
    assert!(wrong(&many).starts_with("N026: network rule 65 "));
    assert!(Rules::parse(many.into_iter().take(MAX_RULES), PORTS).is_ok());
}

#[test]
fn the_rule_that_is_wrong_is_named_and_shown() {
    let text = wrong(&["allow connect ** *", "deny listen ** *:x"]);
    assert!(text.starts_with("N023: network rule 2 (`deny listen ** *:x`): "), "{text}");
    let text = wrong(&["allow connect\u{1b}[2J ** *"]);
    assert!(!text.contains('\u{1b}'), "a terminal would obey it: {text}");
    let text = wrong(&[&format!("allow connect ** *:{}", "9".repeat(400))]);
    assert!(text.contains("999...`"), "{text}");
}

#[test]
fn what_people_write_is_read() {
    for rule in [
        "allow listen web-server.singularity *:80",
        "  allow   listen   web-server.singularity   *:80  ",
        "deny connect ** 10.0.0.0/8:1-1023",
        "allow connect ** 10.0.0.1",
        "allow connect ** [::1]",
        "allow connect ** [2001:db8::]/32:8000-8999",
        "allow connect ** [2001:db8::]/32",
        "allow connect ** 0.0.0.0/0",
        "allow connect ** [::]/0:80",
        "allow listen ** *:web",
        "allow listen ** *:web-2",
        "allow listen ** *:web-web-2",
        "allow datagram ** *:0",
        "allow ping ** *",
        "allow connect ..fetch.singularity *:80",
        "allow connect (login.singularity@(admin|alice) + )?shell.singularity + fetch.singularity 192.0.2.0/24",
        "allow resolve ** + dns.singularity",
        "allow resolve **",
        "deny configure **",
    ] {
        assert!(Rules::parse([rule], PORTS).is_ok(), "{rule}: {:?}", Rules::parse([rule], PORTS).err());
    }
}
