//! Shared by network stacks: access checks on behalf of clients, with an audit of refusals.
//!
//! Key type: [`Guard`]. Neighbours: `network-rules`, which decides; the services `net-stack` and `host-sockets`, which
//! check before every action. The principal checked is that of the other end of the client's channel at that moment, so
//! an endpoint that was passed on acts for its current owner. Deliberately not here: later use of a listener or a
//! connection: any process that is given one may use it.
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

/// Name in rules of the port of the system's web server.
const WEB: &str = "web";
/// Object of an audit entry for actions without an address.
const STACK: &str = "the network";

/// Checks the requests of one network stack's clients.
pub struct Guard {
    rules: RefCell<Rules>,
}

impl Guard {
    /// Creates a guard with these rules, in which `web` stands for the port `web_port`.
    ///
    /// # Errors
    ///
    /// One sentence for the user: the error, the rule, and the correct form.
    pub fn new<'r>(lines: impl Iterator<Item = &'r String>, web_port: i64) -> Result<Guard, String> {
        let port =
            u16::try_from(web_port).map_err(|_| alloc::format!("web-port {web_port}: a port is at most 65535"))?;
        let ports = [NamedPort { name: WEB, port }];
        let rules = Rules::parse(lines.map(String::as_str), &ports).map_err(|error| error.to_string())?;
        Ok(Guard { rules: RefCell::new(rules) })
    }

    /// Whether the peer of `client` may perform this action at, or to, an address. Refusals are audited.
    pub fn allows<E: TypedEndpoint>(&self, client: &E, action: Action, end: &SocketAddress) -> bool {
        self.decide(client, action, &End::new(end.ip(), end.port))
    }

    /// As [`allows`](Guard::allows), for actions without an address.
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
