//! TCP, UDP, DNS and network configuration over the host's sockets: for the hosted machine, where a network stack of
//! the system's own would need privileges.
//!
//! Every client, listener and connection is a task on one thread and waits only for its own messages and its own
//! socket's events. Data is received straight into the block that goes to the client, and sent straight from the
//! block that it lent. [`host`] is the device; [`tcp`], [`connection`] and [`transfer`] serve connections, [`udp`],
//! [`dns`], [`ip`] and [`ping`] the rest; [`failures`] maps the host's errors to those of the contracts.
//! `network-guard` decides about access. Deliberately not here: any protocol.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod connection;
mod dns;
mod failures;
mod host;
mod ip;
mod ping;
mod returned;
mod tcp;
mod transfer;
mod udp;

use alloc::format;
use alloc::rc::Rc;

use contracts::service_provider::{self, StartError};
use network_guard::Guard;
use sip::executor;
use sip::exheap::ExVec;
use stdio::report;

use host::Host;
use ip::Known;

sip::startup!();

type Provider = service_provider::Exp<service_provider::states::Start>;

/// Serves until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    let guard = match Guard::new(startup.rule.iter().chain(&startup.added_rule), startup.web_port) {
        Ok(guard) => guard,
        Err(explanation) => return refuse(startup.tcp, StartError::BadParameter, &explanation),
    };
    let host = match Host::open(&startup.sockets, guard) {
        Ok(host) => host,
        Err(status) => {
            let explanation = format!("the host's sockets cannot be used: {}", status.text());
            return refuse(startup.tcp, provider::start_error(status), &explanation);
        }
    };
    i32::from(executor::block_on(serve(startup, host)).is_err())
}

/// Reports why the service cannot start; the parent process shows it to the user.
fn refuse(provider: Provider, error: StartError, explanation: &str) -> i32 {
    match ExVec::from_slice(explanation.as_bytes()) {
        Ok(block) => drop(provider.not_ready(error, block)),
        Err(_) => report::error(format_args!("{explanation}")),
    }
    1
}

async fn serve(startup: Startup, host: Rc<Host>) {
    drop(executor::spawn(Rc::clone(&host).receive_events()));
    let known = Rc::new(Known::default());

    let (of_udp, udp) = (Rc::clone(&host), startup.udp);
    let udp_known = Rc::clone(&known);
    drop(executor::spawn(accept(udp, move |client| udp::serve(of_udp.clone(), udp_known.clone(), client))));
    let (of_dns, dns) = (Rc::clone(&host), startup.dns);
    drop(executor::spawn(accept(dns, move |client| dns::serve(of_dns.clone(), client))));
    let (of_ip, ip) = (Rc::clone(&host), startup.ip);
    let ip_known = Rc::clone(&known);
    drop(executor::spawn(accept(ip, move |client| ip::serve(of_ip.clone(), ip_known.clone(), client))));

    accept(startup.tcp, move |client| tcp::serve(host.clone(), known.clone(), client)).await;
}

async fn accept<E, F>(provider: Provider, serve: impl FnMut(E) -> F)
where
    E: sip::channel::TypedEndpoint,
    F: Future<Output = ()> + 'static,
{
    provider::accept(provider.ready(), serve).await;
}
