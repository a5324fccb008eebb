//! Kinds of objects that a SIP owns and lists. Where the links of one lie is known to the module of its kind, which is
//! far above this.

/// Threads of a SIP.
pub enum Threads {}
/// Exchange-heap blocks of a SIP.
pub enum Blocks {}
/// Endpoints of a SIP, numbered as in handles.
pub enum Endpoints {}
/// Mutexes, events, wait sets and debug sinks of a SIP.
pub enum Syncs {}
