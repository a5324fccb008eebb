//! Random rules: decisions match a bit-by-bit model, and no text crashes the parser.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use network_rules::{Action, End, Rules};
use proptest::prelude::*;

/// The model of a rule.
#[derive(Clone, Debug)]
struct Meant {
    allows: bool,
    action: Action,
    who: &'static str,
    network: Option<(IpAddr, u8)>,
    ports: Option<(u16, u16)>,
}

impl Meant {
    fn text(&self) -> String {
        let verdict = if self.allows { "allow" } else { "deny" };
        let mut text = format!("{verdict} {} {} ", self.action.word(), self.who);
        text += &match self.network {
            None => "*".to_string(),
            Some((IpAddr::V4(address), bits)) => format!("{address}/{bits}"),
            Some((IpAddr::V6(address), bits)) => format!("[{address}]/{bits}"),
        };
        if let Some((first, last)) = self.ports {
            text += &format!(":{first}-{last}");
        }
        text
    }

    fn matches(&self, who: &str, action: Action, address: IpAddr, port: u16) -> bool {
        let has_address = match self.network {
            None => true,
            Some(_) if address.is_unspecified() => !self.allows,
            Some((network, bits)) => {
                let (network, address) = (binary(network), binary(address));
                network.len() == address.len() && network[..bits.into()] == address[..bits.into()]
            }
        };
        let has_who = self.who == "**" || self.who == who;
        let is_any_port = port == 0 && !self.allows;
        let has_port = self.ports.is_none_or(|(first, last)| is_any_port || first <= port && port <= last);
        has_who && self.action == action && has_address && has_port
    }
}

fn binary(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.octets().iter().map(|byte| format!("{byte:08b}")).collect(),
        IpAddr::V6(address) => address.octets().iter().map(|byte| format!("{byte:08b}")).collect(),
    }
}

const NAMES: [&str; 2] = ["a.singularity", "b.singularity"];
const ACTIONS: [Action; 2] = [Action::Listen, Action::Connect];

/// Few bits vary, so that addresses match networks.
fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (0u32..8).prop_map(|low| IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 | low))),
        (0u128..8).prop_map(|low| IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | low))),
        Just(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        Just(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
    ]
}

fn network() -> impl Strategy<Value = (IpAddr, u8)> {
    (address(), 0u8..5).prop_filter_map("an address of its own", |(address, short)| match address {
        _ if address.is_unspecified() => None,
        IpAddr::V4(address) => {
            let bits = 32 - short;
            Some((IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() >> short << short)), bits))
        }
        IpAddr::V6(address) => {
            let bits = 128 - short;
            Some((IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> short << short)), bits))
        }
    })
}

fn meant() -> impl Strategy<Value = Meant> {
    let who = prop::sample::select(vec!["**", NAMES[0], NAMES[1]]);
    let ports = prop::option::of((0u16..6, 0u16..6).prop_map(|(one, other)| (one.min(other), one.max(other))));
    let action = prop::sample::select(ACTIONS.to_vec());
    (any::<bool>(), action, who, prop::option::of(network()), ports)
        .prop_map(|(allows, action, who, network, ports)| Meant { allows, action, who, network, ports })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rules_decide_what_they_say(
        all in prop::collection::vec(meant(), 1..8),
        asked in prop::collection::vec((0usize..2, 0usize..2, address(), 0u16..6), 1..32),
    ) {
        let texts: Vec<String> = all.iter().map(Meant::text).collect();
        let mut rules = Rules::parse(texts.iter().map(String::as_str), &[]).expect("rules");
        for (who, action, address, port) in asked {
            let (who, action) = (NAMES[who], ACTIONS[action]);
            let first = all.iter().find(|rule| rule.matches(who, action, address, port));
            let decided = rules.decide(who, action, &End::new(address, port)).is_ok();
            prop_assert_eq!(decided, first.is_some_and(|rule| rule.allows), "{:?} {} {:?} {} {}", texts, who, action, address, port);
        }
    }

    #[test]
    fn no_text_brings_the_reader_down(text in "\\PC{0,60}") {
        let _ = Rules::parse([text.as_str()], &[]);
    }

    #[test]
    fn nothing_that_looks_like_a_rule_does(text in "(allow|deny|) ?(listen|ping|resolve|) ?[*.a-z+() -]{0,12} ?[\\[\\]0-9a-f:./*-]{0,20}") {
        let _ = Rules::parse([text.as_str()], &[]);
    }
}
