//! Shows and changes the routing table.

use alloc::format;
use alloc::string::{String, ToString};

use client::namespace::Namespace;
use contracts::ip_configuration::IpError;
use contracts::{InterfaceRecord, RouteFlags, RouteRecord};
use network::address::{Network, from_bytes, is_unspecified, parse_address, to_bytes};
use network::ip::IpStack;
use network::{IP, NetError};
use stdio::{Output, report};
use text::{Align, Table, padded};

sip::startup!("route/manifest.toml");

/// Shows the routes, or adds or removes one.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let wanted = Wanted {
        network: startup.network.as_deref(),
        gateway: startup.gateway.as_deref(),
        interface: startup.interface.as_deref(),
    };
    let Some(action) = Action::new(&startup.action, wanted.network) else {
        report::error(format_args!(
            "`{}`: use `route`, `route add NETWORK GATEWAY` or `route remove NETWORK`",
            startup.action
        ));
        return 2;
    };
    let stack = IpStack::open(&mut namespace).map_err(about(IP));
    let done = stack.and_then(|mut stack| match action {
        Action::List => list(&mut stack),
        Action::Add(network) => wanted.add(&mut stack, network).map(|()| String::new()),
        Action::Remove(network) => wanted.remove(&mut stack, network).map(|()| String::new()),
    });
    match done {
        Ok(text) => {
            let mut output = Output::new(startup.output);
            output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
        }
        Err((what, error)) => report::path_error(&what, &error),
    }
}

enum Action<'a> {
    List,
    Add(&'a str),
    Remove(&'a str),
}

impl<'a> Action<'a> {
    fn new(word: &str, network: Option<&'a str>) -> Option<Action<'a>> {
        match (word, network) {
            ("list", None) => Some(Action::List),
            ("add", Some(network)) => Some(Action::Add(network)),
            ("remove", Some(network)) => Some(Action::Remove(network)),
            _ => None,
        }
    }
}

/// The failed operation, and the cause.
type Error = (String, String);

/// Attaches the subject to an error.
fn about<E: ToString>(what: &str) -> impl Fn(E) -> Error + use<'_, E> {
    move |error| (what.into(), error.to_string())
}

/// A route as given on the command line.
struct Wanted<'a> {
    network: Option<&'a str>,
    gateway: Option<&'a str>,
    interface: Option<&'a str>,
}

impl Wanted<'_> {
    fn add(&self, stack: &mut IpStack, network: &str) -> Result<(), Error> {
        let network_text = network;
        let network = parse_network(network)?;
        let gateway = self.gateway.map(parse_gateway).transpose()?;
        // `default` alone means IPv4; an IPv6 gateway makes it the IPv6 default route.
        let is_version_6 = gateway.unwrap_or(network.address).is_ipv6();
        let is_default = network.prefix_bits == 0;
        if !is_default && gateway.is_some_and(|gateway| gateway.is_ipv6() != network.address.is_ipv6()) {
            return Err((network_text.into(), "network and gateway have different IP versions".into()));
        }
        let interface = self.interface_number(stack)?;
        let route = RouteRecord {
            network: if is_default { [0; 16] } else { to_bytes(network.address) },
            gateway: gateway.map_or([0; 16], to_bytes),
            prefix_bits: network.prefix_bits.into(),
            interface,
            flags: RouteFlags::IPV6.when(is_version_6),
            reserved: 0,
        };
        stack.add_route(route).map_err(|error| match (error, self.gateway) {
            (NetError::Ip(IpError::BadAddress), None) => {
                (network_text.into(), "the gateway is missing: `route add NETWORK GATEWAY`".into())
            }
            (NetError::Ip(IpError::BadAddress), Some(gateway)) => {
                (gateway.into(), "not on a network of this machine; `ipconfig` shows them".into())
            }
            (error, _) => about(network_text)(error),
        })
    }

    fn remove(&self, stack: &mut IpStack, network: &str) -> Result<(), Error> {
        let wanted = parse_network(network)?;
        let gateway = self.gateway.map(parse_gateway).transpose()?;
        let number = self.interface.map(|_| self.interface_number(stack)).transpose()?;
        let routes = stack.routes().map_err(about("the routes"))?;
        let mut matching = routes.into_iter().filter(|route| {
            network_of(route) == wanted
                && gateway.is_none_or(|gateway| from_bytes(route.gateway) == gateway)
                && number.is_none_or(|number| route.interface == number)
        });
        let route = matching.next().ok_or_else(|| about(network)(NetError::from(IpError::NotFound)))?;
        stack.remove_route(route).map_err(about(network))
    }

    /// Returns the number of the named interface; 0 if none was named.
    fn interface_number(&self, stack: &mut IpStack) -> Result<u32, Error> {
        let Some(name) = self.interface else { return Ok(0) };
        let interfaces = stack.interfaces().map_err(about(name))?;
        let found = interfaces.iter().find(|record| padded(&record.name) == name);
        found.map(|record| record.number).ok_or_else(|| about(name)(NetError::from(IpError::NotFound)))
    }
}

fn parse_network(text: &str) -> Result<Network, Error> {
    Network::parse(text).map(Network::masked).map_err(about(text))
}

fn parse_gateway(text: &str) -> Result<core::net::IpAddr, Error> {
    parse_address(text).map_err(about(text))
}

/// Returns the destination network of a route. An all-zero address is the default route of the family in the flags.
fn network_of(route: &RouteRecord) -> Network {
    let network = if is_unspecified(route.network) && !route.flags.contains(RouteFlags::IPV6) {
        to_bytes(core::net::Ipv4Addr::UNSPECIFIED.into())
    } else {
        route.network
    };
    Network::new(network, route.prefix_bits)
}

fn list(stack: &mut IpStack) -> Result<String, Error> {
    let routes = stack.routes().map_err(about("the routes"))?;
    let interfaces = stack.interfaces().map_err(about("the interfaces"))?;
    Ok(render(&routes, &interfaces))
}

fn render(routes: &[RouteRecord], interfaces: &[InterfaceRecord]) -> String {
    let columns = ["NETWORK", "GATEWAY", "INTERFACE", "FROM"].map(|name| (name, Align::Left));
    let mut table = Table::new(&columns);
    for route in routes {
        let network = match network_of(route) {
            network if network.prefix_bits == 0 => {
                if network.address.is_ipv4() {
                    "default".into()
                } else {
                    "default (IPv6)".into()
                }
            }
            network => network.to_string(),
        };
        let gateway =
            if is_unspecified(route.gateway) { String::from("-") } else { from_bytes(route.gateway).to_string() };
        let interface = interfaces.iter().find(|record| record.number == route.interface);
        let interface = interface.map_or_else(|| format!("{}", route.interface), |record| padded(&record.name));
        let from = match route.flags {
            flags if flags.contains(RouteFlags::DHCP | RouteFlags::IPV6) => "a router",
            flags if flags.contains(RouteFlags::DHCP) => "DHCP",
            flags if flags.contains(RouteFlags::LINK) => "its address",
            _ => "a person",
        };
        table.row([network, gateway, interface, from.into()]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use contracts::InterfaceFlags;
    use text::pad;

    use super::*;

    fn route(network: &str, gateway: [u8; 16], flags: RouteFlags) -> RouteRecord {
        let network = Network::parse(network).expect("a network");
        let address = if network.prefix_bits == 0 { [0; 16] } else { to_bytes(network.address) };
        RouteRecord {
            network: address,
            gateway,
            prefix_bits: network.prefix_bits.into(),
            interface: 1,
            flags,
            reserved: 0,
        }
    }

    #[test]
    fn routes_are_shown_with_where_they_come_from() {
        let gateway = to_bytes("10.0.2.2".parse().expect("an address"));
        let interface = InterfaceRecord {
            name: pad("net0"),
            number: 1,
            mtu: 1500,
            mac_address: [0; 6],
            flags: InterfaceFlags::empty(),
            addresses: 0,
            reserved: 0,
            link_bits_per_s: 0,
            received_packets: 0,
            received_bytes: 0,
            sent_packets: 0,
            sent_bytes: 0,
            dropped_packets: 0,
        };
        let routes = [
            route("default", gateway, RouteFlags::DHCP),
            route("10.0.2.0/24", [0; 16], RouteFlags::LINK),
            route("::/0", to_bytes("fe80::1".parse().expect("an address")), RouteFlags::IPV6),
            route("::/0", to_bytes("fe80::2".parse().expect("an address")), RouteFlags::IPV6 | RouteFlags::DHCP),
        ];
        assert_eq!(
            render(&routes, &[interface]),
            "NETWORK         GATEWAY   INTERFACE  FROM\n\
             default         10.0.2.2  net0       DHCP\n\
             10.0.2.0/24     -         net0       its address\n\
             default (IPv6)  fe80::1   net0       a person\n\
             default (IPv6)  fe80::2   net0       a router\n"
        );
    }
}
