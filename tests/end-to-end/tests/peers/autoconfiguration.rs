//! An unconfigured machine: a Linux network gives it IPv4 and IPv6 addresses, routes and name servers.

use std::fs;
use std::net::Ipv6Addr;
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::{Format, Image, Live, Machine, built_system};

use crate::network::{LEASES, MACHINE, NAME, Network, PEER, PEER_IPV6, PREFIX};

test_needs::needs!(Namespaces, Dnsmasq, Curl, Python, E2fsprogs);

/// Timeout for all addresses: router solicitation and duplicate address detection take some seconds.
const TIMEOUT: Duration = Duration::from_secs(30);
const PORT: u16 = 8000;
const CONTENT: &str = "a file of the machine's\n";

/// Output of `ipconfig` once there is an assigned address of each kind; and the IPv6 one.
#[track_caller]
fn configured(live: &mut Live) -> (String, Ipv6Addr) {
    let begin = Instant::now();
    loop {
        let text = live.ask("ipconfig");
        let given = text.split_whitespace().filter_map(|word| word.split_once('/')).find_map(|(address, _)| {
            let address: Ipv6Addr = address.parse().ok()?;
            address.to_string().starts_with(PREFIX).then_some(address)
        });
        match given {
            Some(address) if text.contains(&format!("{LEASES}.5")) => return (text, address),
            _ => assert!(begin.elapsed() < TIMEOUT, "not all addresses are there:\n{text}\n{}", live.errors()),
        }
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn addresses_routes_and_names_come_from_the_network() {
    let system = built_system("peers-check");
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    fs::write(folder.path().join("file"), CONTENT).expect("a file can be written");
    let disk = Image::of(folder.path(), Format { mebibytes: 16, block_bytes: 4096, ..Format::default() });
    let network = Network::new("given");
    let _giver = network.gives_addresses();
    let machine = Machine::new().system(system).disk(disk.path());
    let mut command = network.of_guest(&machine.command(None));
    command.args(["--parameter", "web-port=80"]);
    let mut live = Live::start(command);
    let (shown, address) = configured(&mut live);
    assert!(!shown.contains(MACHINE) && shown.contains(PEER), "addresses, and the name server:\n{shown}");
    let routes = live.ask("route");
    assert!(routes.contains(PEER), "the way to everywhere:\n{routes}");
    // A restart of the driver must not cost the address or established connections.
    live.ask("kill tap");
    let kept = live.ask("ipconfig");
    assert!(kept.contains(&format!("{LEASES}.5")) && kept.contains(PEER), "after a restart of the driver:\n{kept}");
    for (command, words) in [
        ("route add 10.9.0.0/16".to_string(), "`route add NETWORK GATEWAY`"),
        ("route add 10.9.0.0/16 203.0.113.1".into(), "203.0.113.1: not on a network of this machine"),
        ("route add 10.9.0.0/16 2001:db8::1".into(), "different IP versions"),
        (format!("ping {PEER} --size 60000"), "60000 bytes do not fit one packet"),
    ] {
        live.ask_what_says(&command, words);
    }
    // A route can be removed although its gateway is no longer a neighbour.
    for command in ["ipconfig --add 10.5.5.5/24", "route add 10.7.0.0/16 10.5.5.1", "ipconfig --remove 10.5.5.5"] {
        live.ask(command);
    }
    assert!(live.ask("route").contains("10.7.0.0/16"), "{}", live.errors());
    live.ask("route remove 10.7.0.0/16");
    assert!(!live.ask("route").contains("10.7.0.0/16"), "{}", live.errors());

    for host in [PEER, PEER_IPV6, NAME, &format!("{NAME} --ipv6")] {
        let told = live.ask(&format!("ping {host} --count 2"));
        assert!(told.contains("2 received, 0 lost"), "{host}: {told}\n{}", live.errors());
    }
    // A query goes out immediately, although the network is otherwise idle.
    for _ in 0..5 {
        thread::sleep(Duration::from_millis(1200));
        assert_eq!(live.ask(&format!("dns {NAME} --ipv6")), format!("{PEER_IPV6}\n"), "{}", live.errors());
    }
    assert_eq!(live.ask(&format!("dns {NAME} --ipv4")), format!("{PEER}\n"));
    assert_eq!(live.ask(&format!("dns {NAME} --ipv6")), format!("{PEER_IPV6}\n"));
    assert_eq!(live.ask("dns nobody.test; echo $?"), "1\n", "{}", live.errors());

    for (at, host) in [(PEER, NAME.to_string()), (PEER_IPV6, format!("[{PEER_IPV6}]"))] {
        let server = network.server(&format!("serve {at} {PORT} 200000 5"));
        let got = live.ask(&format!("fetch --quiet http://{host}:{PORT}/data | hash"));
        assert!(got.starts_with(&server.said), "{host}: {got}\n{}", live.errors());
    }
    let url = format!("http://[{address}]/file");
    let page = network.run("curl", &["-sS", "-g", "--max-time", "60", &url]);
    assert_eq!(page.text(), CONTENT, "{page}\n{}", live.errors());
    assert_eq!(live.end(), Some(0));
}
