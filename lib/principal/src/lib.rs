//! Principals and access control: compound principals, patterns over them, access control lists, and a decision cache.
//!
//! Key types: [`Principal`] (the kernel's text, parsed), [`Pattern`] (a set of principals), [`Acl`] (ordered entries
//! that allow or deny [`Rights`]), [`DecisionCache`]. Pure; recursion on untrusted input is bounded. Deliberately not
//! here: storage and inheritance of lists (the servers'), and creation of principals (the kernel's).
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
