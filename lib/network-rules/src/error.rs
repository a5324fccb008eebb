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
            Fault::Empty => "empty rule; write `allow|deny ACTION PRINCIPAL PLACE`, or remove it",
            Fault::TooLong => return write!(formatter, "longer than {MAX_BYTES} bytes; split it into several rules"),
            Fault::ControlCharacter => "contains a control character; write the rule on one line, separated by spaces",
            Fault::BadVerdict => "expected `allow` or `deny` as the first word; begin the rule with one of them",
            Fault::NoAction => {
                "missing action; write `listen`, `connect`, `datagram`, `ping`, `resolve` or `configure` \
                 after the first word"
            }
            Fault::BadAction => "unknown action; use `listen`, `connect`, `datagram`, `ping`, `resolve` or `configure`",
            Fault::NoWho => "missing principal; add a pattern such as `..fetch.singularity`, or `**` for any principal",
            Fault::BadWho(error) => return write!(formatter, "{error}; {}", error.remedy()),
            Fault::NoPlace => {
                "missing place; end with `*`, `ADDRESS` or `ADDRESS/PREFIX`, optionally followed by `:PORT`, \
                 for example `192.0.2.0/24:80`"
            }
            Fault::TooManyWords => {
                "too many words; write `allow|deny ACTION PRINCIPAL PLACE`, with spaces in a principal only around `+`"
            }
            Fault::HasPlace => "`resolve` and `configure` take no place; remove everything after the principal",
            Fault::AfterStar => "unexpected text after `*`; write `*` or `*:80`",
            Fault::BadAddress => {
                "invalid address; use `*`, an address such as `192.0.2.1` or `[2001:db8::1]`, \
                 or a prefix such as `192.0.2.0/24`"
            }
            Fault::NoBrackets => "IPv6 address without brackets; write `[2001:db8::]/32:80`",
            Fault::BracketOpen => "unclosed bracket; write `[2001:db8::1]`",
            Fault::BracketsOfVersion4 => "IPv4 address in brackets; write `192.0.2.1`",
            Fault::MappedAddress => "IPv4-mapped IPv6 address, which never matches; write `192.0.2.1`",
            Fault::Unspecified => {
                "the unspecified address is not a host; write `*` for all addresses, `0.0.0.0/0` for IPv4 \
                 or `[::]/0` for IPv6"
            }
            Fault::BadBits => "invalid prefix length; use at most 32 for IPv4, 128 for IPv6",
            Fault::BitsBehindNetwork => {
                "host bits set beyond the prefix; clear them, as in `192.0.2.0/24`, or remove the prefix length"
            }
            Fault::AfterAddress => {
                "unexpected text after the address; only `/PREFIX` and `:PORT` may follow, as in `192.0.2.0/24:80`"
            }
            Fault::BadPort => {
                "invalid port; write a number up to 65535 as in `:80`, a range as in `:8000-8999`, \
                 or no `:` for all ports"
            }
            Fault::UnknownPortName => "unknown port name; use a number, or `web` for the web server's port",
            Fault::PortsReversed => "port range is reversed; write the lower port first",
            Fault::PortsOfPing => "`ping` takes no ports; remove them",
            Fault::TooManyRules => {
                return write!(
                    formatter,
                    "more than {MAX_RULES} rules; combine some with patterns such as `..(dns|ping).singularity`"
                );
            }
        };
        formatter.write_str(text)
    }
}
