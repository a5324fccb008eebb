//! What network stacks share: asking the rules on behalf of a client, and noting what was refused.
//!
//! Key type: [`Guard`]. Neighbours: `network-rules`, which decides; the services `net-stack` and `host-sockets`, which
//! ask before they do anything. Who asks is the principal that the other end of the client's channel speaks for at that
//! moment, so an endpoint that was passed on asks for whoever has it now. Deliberately not here: what becomes of a
//! listener or a connection later: whoever is given one may use it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::{String, ToString};
use core::cell::RefCell;

use contracts::SocketAddress;
pub use network_rules::Action;
use network_rules::{End, NamedPort, Rules};
use sip::audit;
use sip::channel::TypedEndpoint;

/// The name in rules of the port that the system's web server takes connections at.
const WEB: &str = "web";
/// What is asked for where there is no place to name.
const STACK: &str = "the network";

/// Decides what the clients of one network stack may do.
pub struct Guard {
    rules: RefCell<Rules>,
}

impl Guard {
    /// A guard with these rules, in which `web` stands for the port `web_port`.
    ///
    /// # Errors
    /// One sentence for people: what is wrong with which rule, and what to write instead.
    pub fn new(lines: &[String], web_port: i64) -> Result<Guard, String> {
        let port =
            u16::try_from(web_port).map_err(|_| alloc::format!("web-port {web_port}: a port is at most 65535"))?;
        let ports = [NamedPort { name: WEB, port }];
        let rules = Rules::parse(lines.iter().map(String::as_str), &ports).map_err(|error| error.to_string())?;
        Ok(Guard { rules: RefCell::new(rules) })
    }

    /// Whether who has the other end of `client` may do this at, or to, an end. What is refused is noted.
    pub fn allows<E: TypedEndpoint>(&self, client: &E, action: Action, end: &SocketAddress) -> bool {
        self.decide(client, action, &End::new(end.ip(), end.port))
    }

    /// The same for what has no place.
    pub fn allows_action<E: TypedEndpoint>(&self, client: &E, action: Action) -> bool {
        self.decide(client, action, &End::NOWHERE)
    }

    fn decide<E: TypedEndpoint>(&self, client: &E, action: Action, end: &End) -> bool {
        let mut rules = self.rules.borrow_mut();
        if rules.is_empty() {
            return true;
        }
        let Ok(principal) = sip::principal::of_peer(client) else { return false };
        let decided = rules.decide(&principal, action, end);
        if let Err(refusal) = decided {
            let object = match end.address() {
                _ if *end == End::NOWHERE => STACK.to_string(),
                Some(address) if !action.has_ports() => address.to_string(),
                _ => end.to_string(),
            };
            audit::refused(&principal, action.word(), &object, &refusal.to_string());
        }
        decided.is_ok()
    }
}
