//! Reads all functions: their frames, their calls, and which of them never return.

use alloc::vec;

use crate::flow;
use crate::program::{Code, Program};

/// Fills in what the code of each function tells. Whether a function returns depends on the functions that it calls,
/// so functions are read again until nothing changes.
pub(crate) fn read_all(code: &Code<'_>, program: &mut Program, pause: &dyn Fn()) {
    let count = code.ranges.len();
    let mut is_stale = vec![true; count];
    while is_stale.contains(&true) {
        let mut became_endless = vec![false; count];
        for function in (0..count).filter(|&function| is_stale[function]) {
            pause();
            let returns = |other: usize| program.functions.get(other).is_none_or(|other| other.returns);
            let found = flow::read(code, function, &returns);
            let Some(place) = program.functions.get_mut(function) else { continue };
            // One that was found not to return stays so: its own calls can only become fewer.
            became_endless[function] = place.returns && !found.returns;
            place.returns &= found.returns;
            (place.calls, place.stack) = (found.calls, found.stack);
            (place.float, place.traps) = (found.float, found.traps);
            program.mentioned.extend(found.mentioned);
            place.taken = found.taken;
        }
        is_stale = program.functions.iter().map(|function| calls_any(function, &became_endless)).collect();
    }
}

fn calls_any(function: &crate::Function, which: &[bool]) -> bool {
    function.calls.iter().any(|call| match call.target {
        crate::Target::Function(other) => which.get(other).copied().unwrap_or(false),
        _ => false,
    })
}
