//! Kinds of objects that a SIP owns and lists. Their list links are defined in the module of each kind, far above this
//! one.

/// Threads of a SIP.
pub enum Threads {}
/// Exchange-heap blocks of a SIP.
pub enum Blocks {}
/// Endpoints of a SIP, numbered as in handles.
pub enum Endpoints {}
/// Mutexes, events, wait sets and debug sinks of a SIP.
pub enum Syncs {}
