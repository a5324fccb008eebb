//! A single rule.

use principal::Pattern;

use crate::error::Fault;
use crate::place::Place;
use crate::{Action, End, MAX_BYTES, NamedPort};

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    pub allows: bool,
    pub who: Pattern,
    action: Action,
    place: Place,
}

impl Rule {
    /// Parses `allow|deny ACTION PRINCIPAL [PLACE]`.
    pub fn parse(text: &str, ports: &[NamedPort<'_>]) -> Result<Rule, Fault> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Fault::Empty);
        }
        if text.len() > MAX_BYTES {
            return Err(Fault::TooLong);
        }
        if text.chars().any(char::is_control) {
            return Err(Fault::ControlCharacter);
        }
        let (verdict, rest) = first_word(text);
        let allows = match verdict {
            "allow" => true,
            "deny" => false,
            _ => return Err(Fault::BadVerdict),
        };
        let (action, rest) = first_word(rest);
        if action.is_empty() {
            return Err(Fault::NoAction);
        }
        let action = Action::ALL.into_iter().find(|known| known.word() == action).ok_or(Fault::BadAction)?;
        let (who, place) = match action.has_place() {
            true => {
                let (who, place) = rest.rsplit_once(' ').ok_or(match rest {
                    "" => Fault::NoWho,
                    _ => Fault::NoPlace,
                })?;
                (who.trim_end(), Some(place))
            }
            false if rest.is_empty() => return Err(Fault::NoWho),
            false => (rest, None),
        };
        check_spaces(who, place.is_some())?;
        let place = match place {
            None => Place::EVERYWHERE,
            Some(place) => Place::parse(place, ports)?,
        };
        if place.names_ports() && !action.has_ports() {
            return Err(Fault::PortsOfPing);
        }
        let who = Pattern::parse(who).map_err(Fault::BadWho)?;
        Ok(Rule { allows, who, action, place })
    }

    /// Whether it decides this action there; the principal has already been matched.
    ///
    /// An `allow` must cover the whole end, a `deny` matches if it covers a part: listening at all addresses includes
    /// each one.
    pub fn decides(&self, action: Action, end: &End) -> bool {
        self.action == action && if self.allows { self.place.covers(end) } else { self.place.touches(end) }
    }
}

fn first_word(text: &str) -> (&str, &str) {
    match text.split_once(' ') {
        Some((word, rest)) => (word, rest.trim_start()),
        None => (text, ""),
    }
}

/// In a pattern, spaces may only surround a `+` that joins links.
fn check_spaces(who: &str, has_place: bool) -> Result<(), Fault> {
    let bytes = who.as_bytes();
    let is_joint = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        before == Some(&b'+') || bytes.get(at + 1) == Some(&b'+')
    };
    match (0..bytes.len()).all(|at| bytes[at] != b' ' || is_joint(at)) {
        true => Ok(()),
        false if has_place => Err(Fault::TooManyWords),
        false => Err(Fault::HasPlace),
    }
}
