//! The host's name resolution and network configuration: lists as the answers to commands, one record each.
//!
//! Records have the layout of the contract IpConfiguration, numbers little-endian; IPv4 addresses are mapped.
//! Deliberately not here: changing anything.

use std::ffi::{CStr, CString};
use std::fs;
use std::net::{IpAddr, Ipv6Addr};
use std::ptr;

use abi::sockets::Failure;

use crate::socket_calls::{mapped, name_at, unmapped};

pub(crate) type Records = Vec<Vec<u8>>;

/// Maximum addresses returned for a name.
const MAX_ADDRESSES: usize = 64;
const LINK_IS_UP: u16 = 1;
const IS_THE_HOSTS: u16 = 1 << 2;
const ROUTE_VERSION_6: u32 = 1;
const ROUTE_OF_ADDRESS: u32 = 1 << 2;
const SPEED_UNKNOWN: u64 = u64::MAX;

/// Resolves a name to addresses of IPv4 (4), IPv6 (6) or both (0), in the host's order of preference.
pub(crate) fn resolve(name: &[u8], version: u64) -> Result<Records, Failure> {
    let name = CString::new(name).map_err(|_| Failure::BadAddress)?;
    let family = match version {
        0 => libc::AF_UNSPEC,
        4 => libc::AF_INET,
        6 => libc::AF_INET6,
        _ => return Err(Failure::BadCommand),
    };
    // SAFETY: all-zero bytes are a valid addrinfo.
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_family = family;
    hints.ai_socktype = libc::SOCK_STREAM;
    let mut list: *mut libc::addrinfo = ptr::null_mut();
    // SAFETY: name, hints and the list pointer live across the call.
    let answer = unsafe { libc::getaddrinfo(name.as_ptr(), ptr::null(), &hints, &mut list) };
    if answer != 0 {
        return Err(resolve_failure(answer));
    }
    let mut addresses = Records::new();
    let mut next: *const libc::addrinfo = list;
    // SAFETY: the list is as getaddrinfo made it: each entry points to the next or is the last.
    while let Some(entry) = unsafe { next.as_ref() } {
        // SAFETY: the address has the length of its family.
        let found = unsafe { name_at(entry.ai_addr) }.map(|name| name.address.to_vec());
        addresses.extend(found.filter(|address| !addresses.contains(address)));
        next = entry.ai_next;
    }
    // SAFETY: the list was made by getaddrinfo and is not used any more.
    unsafe { libc::freeaddrinfo(list) };
    addresses.truncate(MAX_ADDRESSES);
    if addresses.is_empty() { Err(Failure::NotFound) } else { Ok(addresses) }
}

fn resolve_failure(answer: libc::c_int) -> Failure {
    // Missing in the library: EAI_ADDRFAMILY and EAI_NODATA of netdb.h.
    const OTHER_FAMILY: libc::c_int = -9;
    const NO_DATA: libc::c_int = -5;
    match answer {
        libc::EAI_NONAME | OTHER_FAMILY | NO_DATA => Failure::NotFound,
        libc::EAI_AGAIN => Failure::TimedOut,
        libc::EAI_MEMORY => Failure::Exhausted,
        _ => Failure::ServerFailed,
    }
}

/// One address of one interface, or an interface without one.
struct Found {
    name: String,
    flags: libc::c_uint,
    address: Option<[u8; 16]>,
    prefix_bits: u32,
}

/// Returns the entries of `getifaddrs`.
fn found() -> Result<Vec<Found>, Failure> {
    let mut list: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: the list pointer lives across the call.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return Err(Failure::Other);
    }
    let mut all = Vec::new();
    let mut next: *const libc::ifaddrs = list;
    // SAFETY: the list is as getifaddrs made it: each entry points to the next or is the last.
    while let Some(entry) = unsafe { next.as_ref() } {
        // SAFETY: each entry has a name that ends with a zero byte.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned();
        // SAFETY: address and mask are null or have the length of their family.
        let (address, mask) = unsafe { (name_at(entry.ifa_addr), name_at(entry.ifa_netmask)) };
        let address = address.map(|name| name.address);
        let prefix_bits = mask.map_or(0, |mask| match (address.and_then(unmapped), unmapped(mask.address)) {
            (Some(_), Some(mask)) => u32::from_be_bytes(mask).count_ones(),
            // An all-zero mask is reported without its family.
            (Some(_), None) => 0,
            _ => u128::from_be_bytes(mask.address).count_ones(),
        });
        all.push(Found { name, flags: entry.ifa_flags, address, prefix_bits });
        next = entry.ifa_next;
    }
    // SAFETY: the list was made by getifaddrs and is not used any more.
    unsafe { libc::freeifaddrs(list) };
    Ok(all)
}

/// Returns the host's interfaces.
pub(crate) fn interfaces() -> Result<Records, Failure> {
    let all = found()?;
    let mut names: Vec<&str> = Vec::new();
    for one in &all {
        if !names.contains(&one.name.as_str()) {
            names.push(&one.name);
        }
    }
    let record = |name: &&str| interface(name, &all);
    Ok(names.iter().map(record).collect())
}

fn interface(name: &str, all: &[Found]) -> Vec<u8> {
    let of_it = || all.iter().filter(|one| one.name == name);
    let is_up = of_it().any(|one| one.flags & libc::IFF_RUNNING as libc::c_uint != 0);
    let flags = IS_THE_HOSTS | if is_up { LINK_IS_UP } else { 0 };
    let addresses = of_it().filter(|one| one.address.is_some()).count() as u32;
    let statistic = |which: &str| fact(name, &format!("statistics/{which}")).unwrap_or(0);
    // In Mbit/s, or -1 if unknown.
    let speed = fact(name, "speed").filter(|_| is_up).and_then(|speed| speed.checked_mul(1_000_000));
    let link_bits_per_s = if is_up { speed.unwrap_or(SPEED_UNKNOWN) } else { 0 };

    let mut record = Vec::with_capacity(88);
    record.extend(padded(name));
    record.extend((interface_number(name)).to_le_bytes());
    record.extend((fact(name, "mtu").unwrap_or(0) as u32).to_le_bytes());
    record.extend(hardware_address(name));
    record.extend(flags.to_le_bytes());
    record.extend(addresses.to_le_bytes());
    record.extend(0u32.to_le_bytes());
    record.extend(link_bits_per_s.to_le_bytes());
    for which in ["rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_dropped"] {
        record.extend(statistic(which).to_le_bytes());
    }
    record
}

/// Returns the addresses of the host's interfaces.
pub(crate) fn addresses() -> Result<Records, Failure> {
    let record = |one: Found| {
        let mut record = one.address?.to_vec();
        record.extend(one.prefix_bits.to_le_bytes());
        record.extend(interface_number(&one.name).to_le_bytes());
        Some(record)
    };
    Ok(found()?.into_iter().filter_map(record).collect())
}

/// Returns the host's routes; none if it does not list them.
pub(crate) fn routes() -> Records {
    let version_4 = fs::read_to_string("/proc/net/route").unwrap_or_default();
    let version_6 = fs::read_to_string("/proc/net/ipv6_route").unwrap_or_default();
    let first = version_4.lines().skip(1).filter_map(route_of_version_4);
    first.chain(version_6.lines().filter_map(route_of_version_6)).collect()
}

/// Parses a line of /proc/net/route: interface, destination, gateway, flags, three numbers, mask, ... Addresses are
/// hexadecimal numbers in host byte order.
fn route_of_version_4(line: &str) -> Option<Vec<u8>> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let address = |at: usize| Some(u32::from_str_radix(fields.get(at)?, 16).ok()?.to_ne_bytes());
    let (network, gateway, mask) = (address(1)?, address(2)?, address(7)?);
    let network_record = if mask == [0; 4] { [0; 16] } else { mapped(network) };
    let gateway_record = if gateway == [0; 4] { [0; 16] } else { mapped(gateway) };
    let flags = if gateway == [0; 4] { ROUTE_OF_ADDRESS } else { 0 };
    Some(route(network_record, gateway_record, u32::from_be_bytes(mask).count_ones(), fields.first()?, flags))
}

/// Parses a line of /proc/net/ipv6_route: destination, prefix, source, prefix, gateway, four numbers (the last of
/// them flags), interface.
fn route_of_version_6(line: &str) -> Option<Vec<u8>> {
    const REJECT: u32 = 0x0200;
    const OF_THE_HOST_ITSELF: u32 = 0x8000_0000;
    let fields: Vec<&str> = line.split_whitespace().collect();
    let address = |at: usize| Some(u128::from_str_radix(fields.get(at)?, 16).ok()?.to_be_bytes());
    let flags = u32::from_str_radix(fields.get(8)?, 16).ok()?;
    let (network, gateway): ([u8; 16], [u8; 16]) = (address(0)?, address(4)?);
    // Reject routes, routes to the host itself and multicast are left out.
    if flags & (REJECT | OF_THE_HOST_ITSELF) != 0 || network[0] == 0xff {
        return None;
    }
    let prefix_bits = u32::from_str_radix(fields.get(1)?, 16).ok()?;
    let of_address = if gateway == [0; 16] { ROUTE_OF_ADDRESS } else { 0 };
    Some(route(network, gateway, prefix_bits, fields.get(9)?, ROUTE_VERSION_6 | of_address))
}

fn route(network: [u8; 16], gateway: [u8; 16], prefix_bits: u32, interface: &str, flags: u32) -> Vec<u8> {
    let mut record = network.to_vec();
    record.extend(gateway);
    for number in [prefix_bits, interface_number(interface), flags, 0] {
        record.extend(number.to_le_bytes());
    }
    record
}

/// Returns the host's name servers.
pub(crate) fn name_servers() -> Records {
    let text = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    text.lines().filter_map(name_server).map(|address| address.octets().to_vec()).collect()
}

fn name_server(line: &str) -> Option<Ipv6Addr> {
    let mut words = line.split_whitespace();
    if words.next() != Some("nameserver") {
        return None;
    }
    let address = words.next()?.split('%').next()?;
    Some(match address.parse().ok()? {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    })
}

/// Returns a number from an interface's file in sysfs.
fn fact(interface: &str, which: &str) -> Option<u64> {
    // The name comes from the host; one that would leave the folder is ignored.
    if interface.contains('/') || interface.starts_with('.') {
        return None;
    }
    fs::read_to_string(format!("/sys/class/net/{interface}/{which}")).ok()?.trim().parse().ok()
}

fn interface_number(name: &str) -> u32 {
    fact(name, "ifindex").and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}

fn hardware_address(name: &str) -> [u8; 6] {
    let text = fs::read_to_string(format!("/sys/class/net/{name}/address")).unwrap_or_default();
    let mut address = [0; 6];
    for (byte, part) in address.iter_mut().zip(text.trim().split(':')) {
        *byte = u8::from_str_radix(part, 16).unwrap_or(0);
    }
    address
}

fn padded(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (place, byte) in bytes.iter_mut().zip(name.bytes()) {
        *place = byte;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_as_text_is_its_own_answer() {
        assert_eq!(resolve(b"192.0.2.7", 0), Ok(vec![mapped([192, 0, 2, 7]).to_vec()]));
        assert_eq!(resolve(b"192.0.2.7", 6), Err(Failure::NotFound));
        assert_eq!(resolve(b"a\0b", 0), Err(Failure::BadAddress));
    }

    #[test]
    fn loopback_is_an_interface_with_an_address() {
        let interfaces = interfaces().expect("the host tells");
        let loopback = interfaces.iter().find(|record| record.starts_with(b"lo\0")).expect("loopback");
        assert_eq!(loopback.len(), 88);
        let number = &loopback[16..20];
        let mut local = mapped([127, 0, 0, 1]).to_vec();
        local.extend(8u32.to_le_bytes());
        local.extend(number);
        assert!(addresses().expect("the host tells").contains(&local));
    }

    #[test]
    fn routes_are_read_as_the_host_writes_them() {
        let way_out = route_of_version_4("eth0 00000000 0102000A 0003 0 0 0 00000000 0 0 0").expect("a route");
        assert_eq!(way_out[..16], [0; 16]);
        assert_eq!(way_out[16..32], mapped([10, 0, 2, 1]));
        let near = route_of_version_4("eth0 0002000A 00000000 0001 0 0 0 00FFFFFF 0 0 0").expect("a route");
        assert_eq!((near[..16].to_vec(), near[32]), (mapped([10, 0, 2, 0]).to_vec(), 24));
        assert!(route_of_version_4("nonsense").is_none());
        let zeros = "0".repeat(32);
        let line = format!("fe80{} 40 {zeros} 00 {zeros} 00000100 00000001 00000000 00000001 eth0", &zeros[4..]);
        let link = route_of_version_6(&line).expect("a route");
        assert_eq!((link[0], link[1], link[32], link[40]), (0xfe, 0x80, 64, 5));
    }

    #[test]
    fn name_servers_are_read_as_files_have_them() {
        assert_eq!(name_server("nameserver 192.0.2.1"), Some("::ffff:192.0.2.1".parse().expect("an address")));
        assert_eq!(name_server("nameserver fe80::1%eth0"), Some("fe80::1".parse().expect("an address")));
        assert_eq!(name_server("# nameserver 192.0.2.1"), None);
    }
}
