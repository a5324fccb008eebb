//! The network stack: `Tcp`, `Udp`, `Dns` and `IpConfiguration` for many clients, over one network interface.
//!
//! The protocols are in the library `net-stack-core`; the channels are here. Each conversation is a task on one
//! thread: `interface` exchanges packets, the others serve clients. When the interface's driver ends, sockets stay
//! open and the interface is bound again. `network-guard` decides about access.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod configuration;
mod connection;
mod convert;
mod dns;
mod gate;
mod interface;
mod seed;
mod shared;
mod tcp;
mod transfer;
mod udp;

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use client::namespace::Namespace;
use contracts::service_provider::{self, StartError};
use net_stack::{Address, IpAddress, IpCidr, Limits, Origin, Route};
use network::address::{self, Network};
use network_guard::Guard;
use sip::executor;
use sip::exheap::ExVec;
use stdio::report;

use interface::Interface;
use shared::Shared;

sip::startup!();

type Provider = service_provider::Exp<service_provider::states::Start>;

/// Serves until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    match sip::executor::block_on(serve(startup)) {
        Ok(status) => status,
        Err(status) => {
            report::error(format_args!("cannot wait for clients: {}", status.text()));
            1
        }
    }
}

/// Reports why the service cannot start; the parent process shows it to the user.
fn refuse(provider: Provider, error: StartError, explanation: &str) -> i32 {
    match ExVec::from_slice(explanation.as_bytes()) {
        Ok(block) => drop(provider.not_ready(error, block)),
        Err(_) => report::error(format_args!("{explanation}")),
    }
    1
}

/// Settings from the parameters.
struct Settings {
    addresses: Vec<Address>,
    routes: Vec<Route>,
    name_servers: Vec<IpAddress>,
    dhcp: bool,
    version_6: bool,
}

impl Settings {
    fn read(startup: &Startup) -> Result<Settings, String> {
        let addresses = startup.address.iter().map(|text| {
            let network = Network::parse(text).map_err(|error| format!("address {text}: {error}"))?;
            Ok(Address { network: IpCidr::new(network.address.into(), network.prefix_bits), origin: Origin::Set })
        });
        let gateways = startup.gateway.iter().map(|text| {
            let gateway = address::parse_address(text).map_err(|error| format!("gateway {text}: {error}"))?;
            Ok(convert::default_route(gateway))
        });
        let routes = gateways.chain(startup.route.iter().map(|text| convert::route(text)));
        let name_servers = startup.name_server.iter().map(|text| {
            let server = address::parse_address(text).map_err(|error| format!("name server {text}: {error}"))?;
            Ok(server.into())
        });
        Ok(Settings {
            addresses: addresses.collect::<Result<_, String>>()?,
            routes: routes.collect::<Result<_, String>>()?,
            name_servers: name_servers.collect::<Result<_, String>>()?,
            dhcp: startup.dhcp,
            version_6: startup.ipv6,
        })
    }
}

fn limits(startup: &Startup) -> Limits {
    let number = |value: i64| usize::try_from(value).unwrap_or(0);
    Limits {
        connections: number(startup.connections),
        buffer_bytes: number(startup.buffers_kib).saturating_mul(1024),
        window_bytes: number(startup.window_kib).clamp(4, 1024 * 1024).saturating_mul(1024),
        max_window_bytes: number(startup.max_window_kib).min(1024 * 1024).saturating_mul(1024),
        half_open: number(startup.half_open),
        timeout_ms: u64::try_from(startup.user_timeout.as_millis()).unwrap_or(u64::MAX).max(1000),
    }
}

async fn serve(startup: Startup) -> i32 {
    let settings = match Settings::read(&startup) {
        Ok(settings) => settings,
        Err(explanation) => return refuse(startup.tcp, StartError::BadParameter, &explanation),
    };
    let guard = match Guard::new(startup.rule.iter().chain(&startup.added_rule), startup.web_port) {
        Ok(guard) => guard,
        Err(explanation) => return refuse(startup.tcp, StartError::BadParameter, &explanation),
    };
    let limits = limits(&startup);
    let path = startup.interface;
    let mut namespace = Namespace::new(startup.namespace);
    let seed = seed::draw(&mut namespace);
    let interface = match Interface::open(&mut namespace, &path).await {
        Ok(interface) => interface,
        Err(error) => return refuse(startup.tcp, StartError::Missing, &format!("{path}: {error}")),
    };
    let shared = Rc::new(Shared::new(&interface, limits, seed, guard));
    settle(&shared, &settings);
    drop(executor::spawn(interface::maintain(Rc::clone(&shared), namespace, path, interface)));
    let (of_udp, of_dns, of_ip) = (Rc::clone(&shared), Rc::clone(&shared), Rc::clone(&shared));
    let udp = startup.udp.ready();
    drop(executor::spawn(provider::accept(udp, move |client| udp::serve(Rc::clone(&of_udp), client))));
    let dns = startup.dns.ready();
    drop(executor::spawn(provider::accept(dns, move |client| dns::serve(Rc::clone(&of_dns), client))));
    let ip = startup.ip.ready();
    drop(executor::spawn(provider::accept(ip, move |client| configuration::serve(Rc::clone(&of_ip), client))));
    provider::accept(startup.tcp.ready(), move |client| tcp::serve(Rc::clone(&shared), client)).await;
    0
}

/// Applies the settings to the interface.
fn settle(shared: &Shared, settings: &Settings) {
    let mut stack = shared.stack();
    for address in &settings.addresses {
        if let Err(failure) = stack.add_address(*address) {
            report::error(format_args!("address {}: {failure:?}", address.network));
        }
    }
    for route in &settings.routes {
        stack.add_route(*route);
    }
    stack.set_name_servers(&settings.name_servers);
    stack.set_dhcp(settings.dhcp);
    stack.set_version_6(settings.version_6);
}
