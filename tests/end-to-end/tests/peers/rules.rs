//! Refusals by the rules of a private network stack: each yields a sentence and a line in the audit, and sends no
//! packet to a forbidden peer.

use end_to_end::{Live, Machine, built_system};

use crate::network::{MACHINE, Network, PEER};

test_needs::needs!(Namespaces, Python);

/// Addresses that the rules allow `fetch` to connect to, and those they deny.
const ALLOWED: u16 = 8000;
const DENIED: u16 = 8001;

#[test]
fn what_no_rule_allows_is_refused_and_noted() {
    let network = Network::new("rules");
    let machine = Machine::new().system(built_system("rules-check"));
    let mut live = Live::start(network.of_machine(&machine.command(None)));
    let allowed = network.server(&format!("serve {PEER} {ALLOWED} 1000 1"));
    let _denied = network.server(&format!("serve {PEER} {DENIED} 1000 1"));
    let got = live.ask(&format!("fetch --quiet http://{PEER}:{ALLOWED}/data | hash"));
    assert!(got.starts_with(&allowed.said), "{got}\n{}", live.errors());
    // A listener that a rule allows is reached.
    network.peer(&format!("echo {MACHINE} 1 1000 1"));
    for (command, line) in [
        (
            format!("fetch --quiet http://{PEER}:{DENIED}/data"),
            format!("fetch.singularity refused connect on {PEER}:{DENIED} (network rule 2)"),
        ),
        (
            format!("ping {PEER} --count 1"),
            format!("ping.singularity refused ping on {PEER} (no network rule allows it)"),
        ),
        ("dns peer.test".into(), "dns.singularity refused resolve on the network (no network rule allows it)".into()),
        (
            "ipconfig net0 --add 192.168.77.9/24".into(),
            "ipconfig.singularity refused configure on the network (no network rule allows it)".into(),
        ),
    ] {
        let status = live.ask_what_says(&format!("{command}; echo $?"), "rules");
        assert_eq!(status.lines().last(), Some("1"), "`{command}` is not refused");
        let audit = live.ask("cat /status/audit");
        assert!(audit.contains(&line), "`{command}` leaves no line `{line}`:\n{audit}");
    }
    assert!(!live.ask("ipconfig").contains("192.168.77.9"), "an address was added all the same");
    assert_eq!(live.end(), Some(0));
}
