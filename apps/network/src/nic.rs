//! Shows a network interface, and resolves an address on its link.
//!
//! Key modules: `arp` (requests and replies), `link` (the interface). Deliberately not here: any other protocol.

mod arp;
mod link;

use alloc::format;
use alloc::string::String;
use core::fmt::Write;

use client::namespace::Namespace;
use sip::Deadline;
use stdio::{Output, report};

use link::{Interface, LinkError};

sip::startup!("nic/manifest.toml");

/// Prints the interface's properties, or the result of the ARP request.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let found = match (&*startup.arp, arp::parse(&startup.arp), arp::parse(&startup.source)) {
        ("", ..) => describe(&mut namespace, &startup.interface),
        (wanted, Some(address), Some(own)) => {
            let deadline = Deadline::after_ms(u64::try_from(startup.wait.as_millis()).unwrap_or(u64::MAX));
            match ask(&mut namespace, &startup.interface, own, address, deadline) {
                Ok(Some(mac)) => Ok(format!("{wanted} is at {}\n", text_of(mac))),
                Ok(None) => {
                    report::error(format_args!("{wanted}: no ARP reply on {}", startup.interface));
                    return 1;
                }
                Err(error) => Err(error),
            }
        }
        (wanted, None, _) => return no_address(wanted),
        (_, _, None) => return no_address(&startup.source),
    };
    match found {
        Ok(text) => {
            let mut output = Output::new(startup.output);
            output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
        }
        Err(error) => report::path_error(&startup.interface, &error),
    }
}

fn no_address(text: &str) -> i32 {
    report::error(format_args!("{text}: not an IPv4 address such as 10.0.2.2"));
    2
}

fn describe(namespace: &mut Namespace, path: &str) -> Result<String, LinkError> {
    let interface = Interface::open(namespace, path)?;
    let link = match interface.link_bits_per_s {
        0 => String::from("down"),
        u64::MAX => String::from("up"),
        speed => format!("up, {} Mbit/s", speed / 1_000_000),
    };
    Ok(format!("address {}\nlink    {link}\nmtu     {}\n", text_of(interface.mac), interface.mtu))
}

fn ask(
    namespace: &mut Namespace,
    path: &str,
    own: arp::Ipv4,
    wanted: arp::Ipv4,
    deadline: Deadline,
) -> Result<Option<arp::Mac>, LinkError> {
    let interface = Interface::open(namespace, path)?;
    let question = arp::question(interface.mac, own, wanted);
    let mut running = interface.start()?;
    running.send(&question)?;
    running.receive_until(deadline, |frame| arp::answer(frame, wanted))
}

fn text_of(mac: arp::Mac) -> String {
    let mut text = String::new();
    for (index, byte) in mac.iter().enumerate() {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{}{byte:02x}", if index == 0 { "" } else { ":" });
    }
    text
}
