//! Decisions of rules.

use network_rules::{Action, End, NamedPort, Refusal, Rules};

const PORTS: &[NamedPort<'_>] = &[NamedPort { name: "web", port: 8080 }];
const SERVER: &str = "web-server.singularity";
const FETCH: &str = "fetch.singularity";

fn rules(lines: &[&str]) -> Rules {
    Rules::parse(lines.iter().copied(), PORTS).unwrap_or_else(|error| panic!("{error}"))
}

fn end(address: &str, port: u16) -> End {
    End::new(address.parse().expect("an address"), port)
}

fn may(rules: &mut Rules, who: &str, action: Action, address: &str, port: u16) -> bool {
    rules.decide(who, action, &end(address, port)).is_ok()
}

#[test]
fn without_rules_everything_is_allowed_and_with_one_what_it_says() {
    let mut none = rules(&[]);
    assert!(none.is_empty());
    let mut one = rules(&["allow listen web-server.singularity *:web"]);
    for action in Action::ALL {
        assert_eq!(none.decide(FETCH, action, &End::NOWHERE), Ok(()));
        let expected = if action == Action::Listen { Ok(()) } else { Err(Refusal::NotAllowed) };
        assert_eq!(one.decide(SERVER, action, &end("192.0.2.1", 8080)), expected);
        assert_eq!(one.decide(FETCH, action, &end("192.0.2.1", 8080)), Err(Refusal::NotAllowed));
    }
    assert!(!may(&mut one, SERVER, Action::Listen, "192.0.2.1", 80));
    assert!(!may(&mut one, SERVER, Action::Listen, "192.0.2.1", 0), "a port of one's own is not any port");
}

#[test]
fn the_first_rule_that_matches_decides() {
    let mut all = rules(&[
        "allow connect fetch.singularity 10.0.0.1:80",
        "deny  connect ** 10.0.0.0/8",
        "allow connect *.singularity *",
    ]);
    assert!(may(&mut all, FETCH, Action::Connect, "10.0.0.1", 80));
    assert!(!may(&mut all, FETCH, Action::Connect, "10.0.0.1", 81));
    assert!(!may(&mut all, SERVER, Action::Connect, "10.0.0.1", 80));
    assert!(may(&mut all, SERVER, Action::Connect, "11.0.0.1", 80));
    let told = all.decide(SERVER, Action::Connect, &end("10.9.9.9", 1)).expect_err("it is denied").to_string();
    assert_eq!(told, "network rule 2");
    assert_eq!(Refusal::NotAllowed.to_string(), "no network rule allows it");
}

#[test]
fn networks_end_where_they_say() {
    let table: &[(&str, &str, bool)] = &[
        ("192.0.2.0/24", "192.0.2.0", true),
        ("192.0.2.0/24", "192.0.2.255", true),
        ("192.0.2.0/24", "192.0.3.0", false),
        ("192.0.2.0/24", "192.0.1.255", false),
        ("192.0.2.128/25", "192.0.2.127", false),
        ("192.0.2.128/25", "192.0.2.128", true),
        ("192.0.2.7", "192.0.2.7", true),
        ("192.0.2.7", "192.0.2.6", false),
        ("0.0.0.0/0", "255.255.255.255", true),
        ("0.0.0.0/0", "2001:db8::1", false),
        ("[::]/0", "2001:db8::1", true),
        ("[::]/0", "192.0.2.1", false),
        ("[2001:db8::]/33", "2001:db8:7fff::1", true),
        ("[2001:db8::]/33", "2001:db8:8000::1", false),
        ("[2001:db8::1]", "2001:db8::1", true),
        ("[2001:db8::1]", "2001:db8::3", false),
        ("*", "192.0.2.1", true),
        ("*", "2001:db8::1", true),
    ];
    for (network, address, expected) in table {
        let mut rules = rules(&[&format!("allow connect ** {network}:80-90")]);
        for (port, is_there) in [(79, false), (80, true), (90, true), (91, false), (0, false)] {
            let may = may(&mut rules, FETCH, Action::Connect, address, port);
            assert_eq!(may, *expected && is_there, "{network} {address} {port}");
        }
    }
}

/// A connect to 0.0.0.0 or :: reaches the host itself: a rule against 127.0.0.1 must cover it.
#[test]
fn the_address_that_is_all_zero_is_all_addresses() {
    let mut all = rules(&["deny connect ** 127.0.0.0/8", "allow connect ** *"]);
    for zero in ["0.0.0.0", "::", "::ffff:0.0.0.0"] {
        assert!(!may(&mut all, FETCH, Action::Connect, zero, 80), "{zero}");
        assert_eq!(end(zero, 80).to_string(), "*:80");
    }
    let mut version_4 = rules(&["allow listen ** 0.0.0.0/0"]);
    assert!(may(&mut version_4, SERVER, Action::Listen, "192.0.2.1", 80));
    assert!(!may(&mut version_4, SERVER, Action::Listen, "::", 80), "that listens at addresses of IPv6, too");
    let mut but_one = rules(&["deny listen ** 192.0.2.1:80", "allow listen ** *"]);
    assert!(!may(&mut but_one, SERVER, Action::Listen, "0.0.0.0", 80), "that takes 192.0.2.1 along");
    assert!(may(&mut but_one, SERVER, Action::Listen, "0.0.0.0", 81));
}

/// A principal that may not listen at some ports must not get one of them from the stack.
#[test]
fn the_port_that_the_stack_chooses_is_all_that_are_denied() {
    let mut all = rules(&["deny listen ** *:50000-50999", "allow listen ** *"]);
    assert!(!may(&mut all, SERVER, Action::Listen, "192.0.2.1", 0));
    assert!(may(&mut all, SERVER, Action::Listen, "192.0.2.1", 51000));
    let mut first = rules(&["allow listen ** *:0", "deny listen ** *:50000-50999", "allow listen ** *"]);
    assert!(may(&mut first, SERVER, Action::Listen, "192.0.2.1", 0), "a rule before it may say otherwise");
    assert!(!may(&mut first, SERVER, Action::Listen, "192.0.2.1", 50999));
}

#[test]
fn an_address_of_version_4_in_the_clothes_of_version_6_is_itself() {
    let mut all = rules(&["deny connect ** 10.0.0.0/8", "allow connect ** [::]/0"]);
    assert!(!may(&mut all, FETCH, Action::Connect, "::ffff:10.0.0.1", 80));
    assert!(!may(&mut all, FETCH, Action::Connect, "::ffff:11.0.0.1", 80));
    assert_eq!(end("::ffff:10.0.0.1", 80).to_string(), "10.0.0.1:80");
    assert_eq!(end("2001:db8::1", 80).to_string(), "[2001:db8::1]:80");
}

/// Twice as many principals as are cached: the cache does not change decisions.
#[test]
fn what_is_remembered_changes_nothing() {
    let mut all = rules(&["deny connect program1*.singularity *", "allow connect *.singularity *"]);
    for number in (0..200).chain(0..200) {
        let who = format!("program{number}.singularity");
        let expected = !number.to_string().starts_with('1');
        for _ in 0..2 {
            assert_eq!(may(&mut all, &who, Action::Connect, "192.0.2.1", 80), expected, "{who}");
        }
    }
}

#[test]
fn who_asks_through_others_is_another_principal() {
    let mut plain = rules(&["allow connect fetch.singularity *"]);
    let mut however = rules(&["allow connect ..fetch.singularity *"]);
    let mut role = rules(&["allow connect login.singularity@net + ** *"]);
    for (who, plainly, however_invoked, in_role) in [
        ("fetch.singularity", true, true, false),
        ("shell.singularity + fetch.singularity", false, true, false),
        ("login.singularity@net + shell.singularity + fetch.singularity", false, true, true),
        ("login.singularity@net + shell.singularity + cat.singularity", false, false, true),
        ("login.singularity@guest + shell.singularity + cat.singularity", false, false, false),
        ("fetch.singularity + cat.singularity", false, false, false),
        ("web-fetch.singularity", false, false, false),
    ] {
        for (rules, expected) in [(&mut plain, plainly), (&mut however, however_invoked), (&mut role, in_role)] {
            assert_eq!(may(rules, who, Action::Connect, "192.0.2.1", 80), expected, "{who} {rules:?}");
        }
    }
}
