//! Shows and changes network interfaces, their addresses and the name servers.
//!
//! Key module: `page` (formatting). Deliberately not here: routes, which `route` handles.

mod page;

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::namespace::Namespace;
use contracts::InterfaceRecord;
use network::NetError;
use network::address::{AddressError, Network, parse_address};
use network::ip::IpStack;
use sip::exheap::ExVec;
use stdio::{Output, report};
use text::padded;

sip::startup!("ipconfig/manifest.toml");

/// Applies the requested changes, or shows the configuration.
pub fn main(startup: Startup) -> i32 {
    let mut namespace = Namespace::new(startup.namespace);
    let changes = match Changes::read(startup.add, startup.remove, startup.dhcp, &startup.dns) {
        Ok(changes) => changes,
        Err((text, problem)) => {
            report::error(format_args!("{text}: {problem}"));
            return 2;
        }
    };
    let mut stack = match IpStack::open(&mut namespace) {
        Ok(stack) => stack,
        Err(error) => return report::path_error(network::IP, &error),
    };
    let done = if changes.is_empty() {
        show(&mut stack, startup.interface.as_deref()).map(Some)
    } else {
        changes.make(&mut stack, startup.interface.as_deref()).map(|()| None)
    };
    let mut output = Output::new(startup.output);
    match done {
        Ok(text) => {
            let text = text.unwrap_or_default();
            output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
        }
        Err(Error { what, why }) => report::path_error(&what, &why),
    }
}

/// The failed operation, and the cause.
struct Error {
    what: String,
    why: String,
}

impl Error {
    fn about(what: &str) -> impl Fn(NetError) -> Error + use<> {
        let what = String::from(what);
        move |error| Error { what: what.clone(), why: error.to_string() }
    }
}

/// Requested changes.
struct Changes {
    add: Option<Network>,
    remove: Option<Network>,
    dhcp: Option<bool>,
    servers: Vec<contracts::HostAddress>,
}

impl Changes {
    /// Parses the changes. An error is the invalid text and the reason.
    fn read(
        add: Option<String>,
        remove: Option<String>,
        dhcp: Option<String>,
        servers: &[String],
    ) -> Result<Changes, (String, String)> {
        let said = |text: &str, error: AddressError| (String::from(text), alloc::format!("{error}"));
        let network = |text: Option<String>| {
            text.map(|text| Network::parse(&text).map_err(|error| said(&text, error))).transpose()
        };
        let dhcp = match dhcp.as_deref() {
            None => None,
            Some("on") => Some(true),
            Some("off") => Some(false),
            Some(other) => return Err((other.into(), "use `--dhcp on` or `--dhcp off`".into())),
        };
        if let Some(text) = add.as_deref().filter(|text| !text.contains('/')) {
            return Err((text.into(), "the prefix length is missing; write it like 192.0.2.5/24".into()));
        }
        let mut found = Vec::new();
        for text in servers {
            found.push(parse_address(text).map_err(|error| said(text, error))?.into());
        }
        Ok(Changes { add: network(add)?, remove: network(remove)?, dhcp, servers: found })
    }

    fn is_empty(&self) -> bool {
        self.add.is_none() && self.remove.is_none() && self.dhcp.is_none() && self.servers.is_empty()
    }

    fn make(self, stack: &mut IpStack, interface: Option<&str>) -> Result<(), Error> {
        if self.add.is_some() || self.remove.is_some() || self.dhcp.is_some() {
            let record = chosen(stack, interface)?;
            let about = Error::about(&padded(&record.name));
            if let Some(on) = self.dhcp {
                stack.set_dhcp(record.number, on).map_err(about)?;
            }
            if let Some(address) = self.remove {
                let address = as_it_is(stack, record.number, address)?;
                let text = alloc::format!("{address}");
                stack.remove_address(record.number, address).map_err(Error::about(&text))?;
            }
            if let Some(address) = self.add {
                let text = alloc::format!("{address}");
                stack.add_address(record.number, address).map_err(Error::about(&text))?;
            }
        }
        if !self.servers.is_empty() {
            let about = Error::about("the name servers");
            let servers = ExVec::from_slice(&self.servers).map_err(|status| about(status.into()))?;
            stack.set_name_servers(servers).map_err(about)?;
        }
        Ok(())
    }
}

/// Completes an address to be removed with its configured prefix length, which may be omitted.
fn as_it_is(stack: &mut IpStack, interface: u32, address: Network) -> Result<Network, Error> {
    let addresses = stack.addresses().map_err(Error::about("the addresses"))?;
    let mut of_interface = addresses.iter().filter(|record| record.interface == interface);
    let found = of_interface.find(|record| network::address::from_bytes(record.address) == address.address);
    Ok(found.map_or(address, |record| Network::new(record.address, record.prefix_bits)))
}

/// Returns the named interface, or the only configurable one.
fn chosen(stack: &mut IpStack, name: Option<&str>) -> Result<InterfaceRecord, Error> {
    let interfaces = stack.interfaces().map_err(Error::about("the interfaces"))?;
    if let Some(name) = name {
        let why = "no such interface; `ipconfig` lists them";
        let found = interfaces.into_iter().find(|record| padded(&record.name) == name);
        return found.ok_or_else(|| Error { what: name.into(), why: why.into() });
    }
    let mut others = interfaces.into_iter().filter(|record| !page::is_loopback(record));
    let (first, second) = (others.next(), others.next());
    let why = match (first, second) {
        (Some(record), None) => return Ok(record),
        (None, _) => "no interface can be changed",
        (Some(_), Some(_)) => "several interfaces; name one, as in `ipconfig eth0 --add 192.0.2.5/24`",
    };
    Err(Error { what: "the interface".into(), why: why.into() })
}

fn show(stack: &mut IpStack, name: Option<&str>) -> Result<String, Error> {
    let mut interfaces = stack.interfaces().map_err(Error::about("the interfaces"))?;
    if let Some(name) = name {
        let record = chosen(stack, Some(name))?;
        interfaces.retain(|other| other.number == record.number);
    }
    let addresses = stack.addresses().map_err(Error::about("the addresses"))?;
    let servers = match name {
        None => stack.name_servers().map_err(Error::about("the name servers"))?,
        Some(_) => Vec::new(),
    };
    Ok(page::render(&interfaces, &addresses, &servers))
}
