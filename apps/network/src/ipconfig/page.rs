//! Interfaces as text.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use contracts::{AddressRecord, HostAddress, InterfaceFlags, InterfaceRecord};
use network::address::{MacAddress, Network};
use network::link_text;
use text::{Align, Table, bytes, count, padded};

/// Whether it is the loopback interface.
pub fn is_loopback(record: &InterfaceRecord) -> bool {
    padded(&record.name).starts_with("lo")
}

/// Formats each interface with its addresses and counters, then the name servers.
pub fn render(interfaces: &[InterfaceRecord], addresses: &[AddressRecord], servers: &[HostAddress]) -> String {
    let mut out = String::new();
    for record in interfaces {
        if !out.is_empty() {
            out.push('\n');
        }
        out += &interface(record, addresses.iter().filter(|address| address.interface == record.number));
    }
    if !servers.is_empty() {
        let servers: Vec<String> = servers.iter().map(|server| server.ip().to_string()).collect();
        out += &format!("\nname servers  {}\n", servers.join(", "));
    }
    out
}

fn interface<'a>(record: &InterfaceRecord, addresses: impl Iterator<Item = &'a AddressRecord>) -> String {
    let mut state = if record.flags.contains(InterfaceFlags::UP) { link(record) } else { "down".into() };
    for (flag, text) in [(InterfaceFlags::DHCP, ", addresses by DHCP"), (InterfaceFlags::HOST, ", the host's")] {
        if record.flags.contains(flag) {
            state += text;
        }
    }
    let mut table = Table::new(&[("", Align::Left), ("", Align::Left)]);
    let mut line = |name: &str, value: String| table.row([format!("  {name}"), value]);
    line("link", state);
    if record.mac_address != [0; 6] {
        line("hardware", MacAddress(record.mac_address).to_string());
    }
    line("mtu", format!("{} bytes", record.mtu));
    for address in addresses {
        line("address", Network::new(address.address, address.prefix_bits).to_string());
    }
    let counted = |packets, total| format!("{} packets, {}", count(packets), bytes(total));
    let dropped = format!(", {} of no use", count(record.dropped_packets));
    line("received", counted(record.received_packets, record.received_bytes) + &dropped);
    line("sent", counted(record.sent_packets, record.sent_bytes));
    format!("{}\n{}", padded(&record.name), table.body())
}

fn link(record: &InterfaceRecord) -> String {
    match record.link_bits_per_s {
        0 | u64::MAX => "up".into(),
        speed => format!("up, {}", link_text(speed)),
    }
}

#[cfg(test)]
mod tests {
    use network::address::to_bytes;
    use text::pad;

    use super::*;

    #[test]
    fn an_interface_is_shown_with_what_it_has() {
        let record = InterfaceRecord {
            name: pad("net0"),
            number: 1,
            mtu: 1500,
            mac_address: [2, 0, 0, 0, 0, 1],
            flags: InterfaceFlags::UP | InterfaceFlags::DHCP,
            addresses: 1,
            reserved: 0,
            link_bits_per_s: 1_000_000_000,
            received_packets: 1234,
            received_bytes: 1 << 20,
            sent_packets: 5,
            sent_bytes: 300,
            dropped_packets: 0,
        };
        let address = |text: &str, interface| {
            let network = Network::parse(text).expect("a network");
            AddressRecord { address: to_bytes(network.address), prefix_bits: network.prefix_bits.into(), interface }
        };
        let addresses = [address("10.0.2.15/24", 1), address("127.0.0.1/8", 2)];
        let server = HostAddress { address: to_bytes("10.0.2.3".parse().expect("an address")) };
        assert_eq!(
            render(&[record], &addresses, &[server]),
            "net0\n  link      up, 1 Gbit/s, addresses by DHCP\n  hardware  02:00:00:00:00:01\n  mtu       1500 bytes\n  \
             address   10.0.2.15/24\n  received  1,234 packets, 1.0 MiB, 0 of no use\n  sent      5 packets, 300 B\n\n\
             name servers  10.0.2.3\n"
        );
    }
}
