//! Errors in rules. Each has a stable code and a remedy.

use alloc::string::String;
use core::fmt;

use principal::PatternError;

use crate::{MAX_BYTES, MAX_RULES};

/// A malformed rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// Its number, from 1 on.
    pub number: usize,
    /// Its text, truncated if long.
    pub text: String,
    /// The error.
    pub fault: Fault,
}

impl fmt::Display for RuleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: network rule {} (`{}`): {}", self.fault.code(), self.number, self.text, self.fault)
    }
}

/// Truncates text for a message.
pub fn shown(text: &str) -> String {
    const MAX_SHOWN: usize = 120;
    let plain = text.chars().map(|character| if character.is_control() { '?' } else { character });
    let mut shown: String = plain.take(MAX_SHOWN).collect();
    if text.chars().count() > MAX_SHOWN {
        shown.push_str("...");
    }
    shown
}

/// Problem of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is empty.
    Empty,
    /// Too long.
    TooLong,
    /// A control character.
    ControlCharacter,
    /// Neither `allow` nor `deny`.
    BadVerdict,
    /// No action.
    NoAction,
    /// Unknown action.
    BadAction,
    /// No principal.
    NoWho,
    /// Malformed principal pattern.
    BadWho(PatternError),
    /// No place.
    NoPlace,
    /// Too many words.
    TooManyWords,
    /// A place for an action that has none.
    HasPlace,
    /// Something other than ports after the star.
    AfterStar,
    /// Malformed address.
    BadAddress,
    /// IPv6 without brackets.
    NoBrackets,
    /// An unclosed bracket.
    BracketOpen,
    /// IPv4 in brackets.
    BracketsOfVersion4,
    /// An IPv4-mapped IPv6 address.
    MappedAddress,
    /// The unspecified address.
    Unspecified,
    /// Invalid prefix length.
    BadBits,
    /// Host bits set beyond the prefix.
    BitsBehindNetwork,
    /// Something other than ports after the address.
    AfterAddress,
    /// Malformed port.
    BadPort,
    /// Unknown port name.
    UnknownPortName,
    /// The last port is below the first.
    PortsReversed,
    /// Ports for an echo.
    PortsOfPing,
    /// Too many rules.
    TooManyRules,
}

impl Fault {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Fault::Empty => "N001",
            Fault::TooLong => "N002",
            Fault::ControlCharacter => "N003",
            Fault::BadVerdict => "N004",
            Fault::NoAction => "N005",
            Fault::BadAction => "N006",
            Fault::NoWho => "N007",
            Fault::BadWho(_) => "N008",
            Fault::NoPlace => "N009",
            Fault::TooManyWords => "N010",
            Fault::HasPlace => "N011",
            Fault::AfterStar => "N012",
            Fault::BadAddress => "N013",
            Fault::NoBrackets => "N014",
            Fault::BracketOpen => "N015",
            Fault::BracketsOfVersion4 => "N016",
            Fault::MappedAddress => "N017",
            Fault::Unspecified => "N018",
            Fault::BadBits => "N019",
            Fault::BitsBehindNetwork => "N020",
            Fault::AfterAddress => "N021",
            Fault::BadPort => "N022",
            Fault::UnknownPortName => "N023",
            Fault::PortsReversed => "N024",
            Fault::PortsOfPing => "N025",
            Fault::TooManyRules => "N026",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Fault::Empty => "it is empty; write `allow|deny ACTION WHO PLACE`, or take it out",
            Fault::TooLong => {
                return write!(formatter, "it is longer than {MAX_BYTES} bytes; make several rules of it");
            }
            Fault::ControlCharacter => "it has a control character; write it on one line, with spaces",
            Fault::BadVerdict => "it begins with neither of `allow` and `deny`; begin with one of them",
            Fault::NoAction => {
                "it does not say what; write one of `listen connect datagram ping resolve configure` behind the first word"
            }
            Fault::BadAction => {
                "the second word is nothing that can be allowed; write one of `listen connect datagram ping resolve configure`"
            }
            Fault::NoWho => {
                "it does not say who; write a pattern of principals, as `..fetch.singularity`, or `**` for anyone"
            }
            Fault::BadWho(why) => return write!(formatter, "{why}; {}", why.remedy()),
            Fault::NoPlace => {
                "it does not say where; end with `*`, `ADDRESS`, `ADDRESS/BITS` or either and `:PORT`, as `192.0.2.0/24:80`"
            }
            Fault::TooManyWords => {
                "there is a word too many; write `allow|deny ACTION WHO PLACE`, and spaces in WHO only around `+`"
            }
            Fault::HasPlace => "names and the configuration are nowhere; leave out what stands behind WHO",
            Fault::AfterStar => "only `:PORT` may follow the `*`, which is all addresses; write `*` or `*:80`",
            Fault::BadAddress => {
                "the last word is no address; write `*`, one as `192.0.2.1` or `[2001:db8::1]`, or a network as `192.0.2.0/24`"
            }
            Fault::NoBrackets => "an address of IPv6 stands in brackets; write `[2001:db8::]/32:80`",
            Fault::BracketOpen => "a bracket is not closed; write `[2001:db8::1]`",
            Fault::BracketsOfVersion4 => "an address of IPv4 stands without brackets; write `192.0.2.1`",
            Fault::MappedAddress => {
                "this is an address of IPv4 written as IPv6, which nothing matches; write `192.0.2.1`"
            }
            Fault::Unspecified => {
                "this address stands for all; write `*`, or `0.0.0.0/0` or `[::]/0` for those of one version"
            }
            Fault::BadBits => {
                "what stands behind the stroke is no number of bits; write one up to 32 of IPv4, 128 of IPv6"
            }
            Fault::BitsBehindNetwork => {
                "the address is not the network's first, so it is not clear which of them is meant; \
                 leave out `/BITS`, or write zeros behind so many bits, as `192.0.2.0/24`"
            }
            Fault::AfterAddress => "only `/BITS` and `:PORT` may follow the address; write `192.0.2.0/24:80`",
            Fault::BadPort => "a port is a number up to 65535; write `:80` or `:8000-8999`, or no `:` for all ports",
            Fault::UnknownPortName => {
                "no port has this name here; write its number, or `web`, which is the web server's"
            }
            Fault::PortsReversed => "the last port comes before the first; write the lower one first",
            Fault::PortsOfPing => "an echo has no ports; leave them out",
            Fault::TooManyRules => {
                return write!(
                    formatter,
                    "there are more than {MAX_RULES} rules; join some by patterns: `..(dns|ping).singularity`"
                );
            }
        };
        formatter.write_str(text)
    }
}
