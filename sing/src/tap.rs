//! `sing run --tap`: the address of a machine that is connected to a TAP interface of the host.
//!
//! A TAP network has no DHCP server, so the machine gets a static address unless the user sets one. Deliberately not
//! here: opening the interface; the machine does that.

use std::net::Ipv4Addr;
use std::path::Path;

use crate::command_line::RunArguments;
use crate::failure::{Failure, Outcome};

/// The machine's default address.
pub const MACHINE: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 2);
/// Prefix length of the subnet.
const PREFIX_BITS: u8 = 24;
/// Address of the host's end; the hosted machine configures it when it creates the interface.
const GATEWAY: &str = "192.168.77.1";
/// Suffix of an interface's name: the host leaves packets unchanged.
const PLAIN: &str = ":plain";

/// Returns the host's name of the interface.
pub fn interface(given: &str) -> &str {
    given.strip_suffix(PLAIN).unwrap_or(given)
}

/// Returns the name of an existing interface of the host: one created for a bare machine would have no address.
///
/// # Errors
/// The host has no such interface.
pub fn existing(given: &str) -> Outcome<&str> {
    let name = interface(given);
    // A path into this folder is not an interface name.
    if !name.contains('/') && Path::new("/sys/class/net").join(name).join("tun_flags").exists() {
        return Ok(name);
    }
    Err(Failure::new(format!("this host has no TAP interface `{name}` for the bare machine's network card")).remedy(
        format!(
            "create it: sudo ip tuntap add dev {name} mode tap user $USER; sudo ip addr add {GATEWAY}/{PREFIX_BITS} dev \
             {name}; sudo ip link set {name} up"
        ),
    ))
}

/// Adds the address to the parameters, unless they set one. A user's own system gets none.
pub fn with_address(arguments: &RunArguments) -> RunArguments {
    let mut arguments = arguments.clone();
    let is_given = value(&arguments, "address").is_some() || value(&arguments, "dhcp") == Some("true");
    if arguments.tap.is_some() && arguments.system.is_none() && !is_given {
        for parameter in parameters() {
            let (name, _) = parameter.split_once('=').unwrap_or_default();
            if value(&arguments, name).is_none() {
                arguments.parameter.push(parameter);
            }
        }
    }
    arguments
}

/// Parameters of a machine with that address.
pub fn parameters() -> [String; 3] {
    [format!("address={MACHINE}/{PREFIX_BITS}"), format!("gateway={GATEWAY}"), "dhcp=false".to_string()]
}

/// Returns the machine's address, if it is known before the start.
pub fn address(arguments: &RunArguments) -> Option<&str> {
    let given = value(arguments, "address")?;
    Some(given.split_once('/').map_or(given, |(address, _)| address))
}

fn value<'a>(arguments: &'a RunArguments, name: &str) -> Option<&'a str> {
    arguments.parameter.iter().find_map(|parameter| parameter.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command_line::{Command, CommandLine};

    fn parameters(words: &[&str]) -> Vec<String> {
        let words = ["sing", "run"].iter().chain(words);
        let Command::Run(run) = CommandLine::try_parse_from(words).expect("a legal command line").command else {
            panic!("not run")
        };
        with_address(&run).parameter
    }

    #[test]
    fn a_machine_has_an_address_unless_it_is_given_one() {
        assert_eq!(parameters(&[]), [""; 0]);
        let own = ["address=192.168.77.2/24", "gateway=192.168.77.1", "dhcp=false"];
        assert_eq!(parameters(&["--tap", "sing0"]), own);
        assert_eq!(parameters(&["--tap", "sing0", "--parameter", "dhcp=true"]), ["dhcp=true"]);
        assert_eq!(parameters(&["--tap", "sing0", "--parameter", "address=10.0.0.2/8"]), ["address=10.0.0.2/8"]);
        assert_eq!(parameters(&["--tap", "sing0", "--system", "mine"]), [""; 0]);
    }

    #[test]
    fn an_interface_that_is_not_there_is_told_how_to_make() {
        for name in ["sing-none", "sing-none:plain", "../net/lo", "lo"] {
            let text = existing(name).expect_err(name).to_string();
            assert!(text.contains("ip tuntap add dev"), "{text}");
        }
    }

    #[test]
    fn a_name_may_end_in_plain() {
        assert_eq!((interface("sing0"), interface("sing0:plain")), ("sing0", "sing0"));
    }
}
