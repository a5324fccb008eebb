//! How a SIP ended.

use alloc::borrow::Cow;
use alloc::format;

use abi::EpitaphKind;

/// How a SIP ended.
#[derive(Clone, Debug)]
pub struct Epitaph {
    /// Kind of end.
    pub kind: EpitaphKind,
    /// Exit status, if it exited.
    pub status: u64,
    /// Human-readable reason.
    pub text: Cow<'static, str>,
}

impl Epitaph {
    /// An epitaph without an exit status.
    pub fn new(kind: EpitaphKind, text: impl Into<Cow<'static, str>>) -> Epitaph {
        Epitaph { kind, status: 0, text: text.into() }
    }

    /// The epitaph of a SIP that exited normally.
    pub fn exited(status: u64) -> Epitaph {
        let text = if status == 0 { "exited".into() } else { format!("exited with status {}", status as i64).into() };
        Epitaph { kind: EpitaphKind::Exited, status, text }
    }
}
