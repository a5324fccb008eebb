//! Resolves host names.

use alloc::format;
use alloc::string::ToString;

use client::namespace::Namespace;
use contracts::dns::AddressFamily;
use network::address::Target;
use network::resolve;
use stdio::{Output, report};
use text::{Align, Table};

sip::startup!("dns/manifest.toml");

/// Prints a line for each address; for a single name, the addresses alone.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let family = match (startup.ipv4, startup.ipv6) {
        (true, false) => AddressFamily::Version4,
        (false, true) => AddressFamily::Version6,
        _ => AddressFamily::Any,
    };
    let mut table = Table::new(&[("", Align::Left), ("", Align::Left)]);
    let mut status = 0;
    for name in &startup.names {
        // Rejects invalid host names without a query.
        let host = match Target::parse_host(name) {
            Ok(host) => host,
            Err(error) => {
                status = report::path_error(&format!("`{name}`"), &error);
                continue;
            }
        };
        match resolve(&mut namespace, &host, family) {
            Ok(addresses) if startup.names.len() == 1 => addresses.iter().for_each(|one| table.row([one.to_string()])),
            Ok(addresses) => addresses.iter().for_each(|one| table.row([name.clone(), one.to_string()])),
            Err(error) => status = report::path_error(name, &error),
        }
    }
    let mut output = Output::new(startup.output);
    output.write(table.body().as_bytes()).map_or(1, |()| output.finish_with(status))
}
