//! What happens when memory runs out: whoever took it ends, and nobody else. On a machine that has little.

use alloc::vec::Vec;

use crate::job::citizen;
use crate::{Outcome, Settings, Test, check, function};

/// The tests of this module.
pub(crate) fn tests() -> Vec<Test> {
    alloc::vec![
        function("shortage: a program takes memory without end", |_| hoarder(0)),
        function("shortage: a program takes blocks without end", |_| hoarder(1)),
        function("shortage: a program fills channels without end", |_| hoarder(2)),
        function("shortage: a program starts programs without end", |_| hoarder(3)),
        function("shortage: all of them at once", all_at_once),
    ]
}

fn hoarder(number: u64) -> Outcome {
    for _ in 0..3 {
        citizen("launch").number(number).succeed()?;
    }
    // The system is as it was.
    citizen("join").succeed()
}

fn all_at_once(_: &Settings) -> Outcome {
    let launchers: Vec<_> = (4..8).map(|number| citizen("launch").number(number).start()).collect::<Result<_, _>>()?;
    for launcher in &launchers {
        let epitaph = crate::job::end_of(launcher)?;
        check!(epitaph.is_success(), "{epitaph}");
    }
    Ok(())
}
