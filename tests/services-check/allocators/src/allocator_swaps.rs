//! Swaps two places where both fit: the form is right, and the code is not.

use alloc::vec::Vec;

use register_allocation::{Request, answer};

sip::startup!("allocator-swaps/manifest.toml");

/// Serves its parent.
pub fn main(startup: Startup) -> i32 {
    crate::serve(startup.client, startup.other, |_, request, answer| swapped(request, &answer).unwrap_or(answer))
}

/// The answer with the first swap that fits and is wrong; none if there is no such swap.
fn swapped(request: &Request, right: &[u8]) -> Option<Vec<u8>> {
    let output = request.answer(right).ok()?;
    (1..output.allocs.len()).find_map(|place| {
        let mut changed = output.clone();
        changed.allocs.swap(place - 1, place);
        let bytes = answer::encode(&changed);
        (request.answer(&bytes).is_ok() && request.prove(&changed).is_err()).then_some(bytes)
    })
}
