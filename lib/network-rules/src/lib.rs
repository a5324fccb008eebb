//! Which principals may listen, connect and ask where: the rules of a network stack, one a line.
//!
//! `allow listen ..web-server.singularity *:80`. The first rule that matches decides; where there are rules and none
//! matches, the answer is no; without any rule everything is allowed. Key types: [`Rules`], [`Action`] (what a client
//! wants), [`End`] (where). Neighbours: the services `net-stack` and `host-sockets`, which take rules as parameters,
//! `userland/network-guard`, which asks on their behalf and leaves the audit lines, and `lib/principal`, whose patterns
//! say who. Deliberately not here: channels, and names of hosts, of which a rule would be true only while they resolve
//! as they did.
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

/// Most rules.
pub const MAX_RULES: usize = 64;
/// Most bytes of a rule.
pub const MAX_BYTES: usize = 512;

/// What a client of a network stack wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// To take what comes to an end of this machine: connections, or datagrams at a socket.
    Listen,
    /// To connect to an end of another.
    Connect,
    /// To send datagrams to an end of another.
    Datagram,
    /// To ask another for an echo.
    Ping,
    /// To have names resolved.
    Resolve,
    /// To change addresses, routes and name servers.
    Configure,
}

impl Action {
    /// All there are.
    pub const ALL: [Action; 6] =
        [Action::Listen, Action::Connect, Action::Datagram, Action::Ping, Action::Resolve, Action::Configure];

    /// The word of rules and audit lines.
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

    /// Whether a rule for it says where.
    fn has_place(self) -> bool {
        !matches!(self, Action::Resolve | Action::Configure)
    }

    /// Whether that has ports.
    pub fn has_ports(self) -> bool {
        matches!(self, Action::Listen | Action::Connect | Action::Datagram)
    }
}

/// Where something is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    address: Option<IpAddr>,
    port: u16,
}

impl End {
    /// An address and a port; the port 0 is one that the stack chooses. The address of IPv4 or IPv6 that is all zero
    /// stands for any of the machine's, or reaches the machine itself, so it is all addresses at once.
    pub fn new(address: IpAddr, port: u16) -> End {
        let address = address.to_canonical();
        End { address: (!address.is_unspecified()).then_some(address), port }
    }

    /// The address; none stands for all of the machine's.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Where there is no place to speak of.
    pub const NOWHERE: End = End { address: None, port: 0 };
}

/// As a rule has it: `192.0.2.1:80`, `[2001:db8::1]:80`, `*:80`.
impl fmt::Display for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => write!(formatter, "{}", SocketAddr::new(address, self.port)),
            None => write!(formatter, "*:{}", self.port),
        }
    }
}

/// A port that has a name in rules.
#[derive(Clone, Copy, Debug)]
pub struct NamedPort<'a> {
    /// The word that stands for it.
    pub name: &'a str,
    /// The port.
    pub port: u16,
}

/// Why something is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A rule denies it: the rule's number, from 1 on.
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
    /// Reads rules, the first one first. `ports` have names in them.
    ///
    /// # Errors
    /// One of them is no rule, or there are too many.
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

    /// Whether there are none, so that nothing is refused to anybody.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether a principal may do something there.
    ///
    /// # Errors
    /// Why it may not.
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
