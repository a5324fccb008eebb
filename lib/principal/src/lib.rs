//! Who a process speaks for, and who may do what: compound principals, patterns over them, access control lists, and
//! a cache of decisions.
//!
//! Key types: [`Principal`] (the text that the kernel makes, taken apart), [`Pattern`] (a set of principals),
//! [`Acl`] (ordered entries that allow or deny [`Rights`]), [`DecisionCache`]. Pure and without recursion on what a
//! peer sends beyond a fixed depth. Deliberately not here: where lists are kept and inherited from (the servers know), and making principals (the
//! kernel alone does).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod acl;
mod cache;
mod pattern;
mod rights;
mod states;
mod text;

pub use acl::{ACL_BYTES, ACL_ENTRIES, Acl, AclError, Decided, Entry, Rule, Verb};
pub use cache::DecisionCache;
pub use pattern::{PATTERN_BYTES, Pattern, PatternError};
pub use rights::{Right, Rights};
pub use states::STATE_LIMIT;
pub use text::{LINK_LIMIT, Link, PRINCIPAL_BYTES, Principal, PrincipalError, ROLE_BYTES};
