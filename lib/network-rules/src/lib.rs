//! Network access rules: which principals may listen, connect and resolve where.
//!
//! `allow listen ..web-server.singularity *:80`. The first matching rule decides; if there are rules and none matches,
//! access is denied; without rules everything is allowed. Key types: [`Rules`], [`Action`], [`End`] (address and port).
//! Neighbours: the services `net-stack` and `host-sockets`, which have rules as parameters; `userland/network-guard`,
//! which evaluates them and writes the audit lines; `lib/principal`, whose patterns rules contain. Deliberately not
//! here: channels, and host names, which may resolve differently later.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cache;
mod error;
mod place;
mod rule;

use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, SocketAddr};

use cache::Cache;
pub use error::{Fault, RuleError};
use rule::Rule;

/// Maximum number of rules.
pub const MAX_RULES: usize = 64;
/// Maximum length of a rule, in bytes.
pub const MAX_BYTES: usize = 512;

/// An operation on a network stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Receive at a local end: accept connections, or bind a datagram socket.
    Listen,
    /// Connect to a remote end.
    Connect,
    /// Send datagrams to a remote end.
    Datagram,
    /// Send echo requests.
    Ping,
    /// Resolve names.
    Resolve,
    /// Change addresses, routes and name servers.
    Configure,
}

impl Action {
    /// All actions.
    pub const ALL: [Action; 6] =
        [Action::Listen, Action::Connect, Action::Datagram, Action::Ping, Action::Resolve, Action::Configure];

    /// The keyword in rules and audit lines.
    pub fn word(self) -> &'static str {
        match self {
            Action::Listen => "listen",
            Action::Connect => "connect",
            Action::Datagram => "datagram",
            Action::Ping => "ping",
            Action::Resolve => "resolve",
            Action::Configure => "configure",
        }
    }

    /// Whether a rule for it has a place.
    fn has_place(self) -> bool {
        !matches!(self, Action::Resolve | Action::Configure)
    }

    /// Whether its place has ports.
    pub fn has_ports(self) -> bool {
        matches!(self, Action::Listen | Action::Connect | Action::Datagram)
    }
}

/// The object of an action: an address and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    address: Option<IpAddr>,
    port: u16,
}

impl End {
    /// Creates an end. Port 0 is chosen by the stack. The unspecified address binds to all of the machine's addresses,
    /// or reaches the machine itself, so it counts as all addresses.
    pub fn new(address: IpAddr, port: u16) -> End {
        let address = address.to_canonical();
        End { address: (!address.is_unspecified()).then_some(address), port }
    }

    /// The address; `None` for all of the machine's.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// For actions without a place.
    pub const NOWHERE: End = End { address: None, port: 0 };
}

/// Formatted as in a rule: `192.0.2.1:80`, `[2001:db8::1]:80`, `*:80`.
impl fmt::Display for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => write!(formatter, "{}", SocketAddr::new(address, self.port)),
            None => write!(formatter, "*:{}", self.port),
        }
    }
}

/// A port with a name in rules.
#[derive(Clone, Copy, Debug)]
pub struct NamedPort<'a> {
    /// The name.
    pub name: &'a str,
    /// The port.
    pub port: u16,
}

/// Reason for a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A rule denies it: its number, from 1 on.
    Denied(usize),
    /// No rule allows it.
    NotAllowed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Denied(number) => write!(formatter, "network rule {number}"),
            Refusal::NotAllowed => formatter.write_str("no network rule allows it"),
        }
    }
}

/// The rules of a network stack.
#[derive(Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    cache: Cache,
}

impl Rules {
    /// Parses rules, in order of evaluation. `ports` are named ports.
    ///
    /// # Errors
    /// A rule is malformed, or there are too many.
    pub fn parse<'a>(lines: impl IntoIterator<Item = &'a str>, ports: &[NamedPort<'_>]) -> Result<Rules, RuleError> {
        let mut rules = Vec::new();
        for (index, text) in lines.into_iter().enumerate() {
            let wrong = |fault| RuleError { number: index + 1, text: error::shown(text), fault };
            if index >= MAX_RULES {
                return Err(wrong(Fault::TooManyRules));
            }
            rules.push(Rule::parse(text, ports).map_err(wrong)?);
        }
        Ok(Rules { rules, cache: Cache::default() })
    }

    /// Whether there are no rules, so that everything is allowed.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Decides whether a principal may perform an action.
    ///
    /// # Errors
    ///
    /// The reason for the denial.
    pub fn decide(&mut self, principal: &str, action: Action, end: &End) -> Result<(), Refusal> {
        if self.rules.is_empty() {
            return Ok(());
        }
        let rules = &self.rules;
        let mut left = self.cache.rules_of(principal, || {
            let matching = rules.iter().enumerate().filter(|(_, rule)| rule.who.matches(principal));
            matching.fold(0, |set, (index, _)| set | 1 << index)
        });
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            let Some(rule) = rules.get(index).filter(|rule| rule.decides(action, end)) else { continue };
            return match rule.allows {
                true => Ok(()),
                false => Err(Refusal::Denied(index + 1)),
            };
        }
        Err(Refusal::NotAllowed)
    }
}
