//! Concurrent transfers.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll};

/// Drives futures returned by `next`, at most `limit` at once, until it returns none and all have completed. All are
/// driven to completion, even if one fails, because disk transfers may not be abandoned; after a failure no more are
/// started. Returns the first error.
pub(super) async fn each<F, E>(limit: usize, mut next: impl FnMut() -> Option<F>) -> Result<(), E>
where
    F: Future<Output = Result<(), E>>,
{
    let mut running: Vec<Pin<Box<F>>> = Vec::new();
    let mut first_error = None;
    let mut is_more = true;
    poll_fn(|context| {
        loop {
            while is_more && first_error.is_none() && running.len() < limit.max(1) {
                match next() {
                    Some(future) => running.push(Box::pin(future)),
                    None => is_more = false,
                }
            }
            if !poll_all(&mut running, context, &mut first_error) {
                return if running.is_empty() { Poll::Ready(()) } else { Poll::Pending };
            }
        }
    })
    .await;
    first_error.map_or(Ok(()), Err)
}

/// Polls all, and removes the completed ones. Returns whether there were any.
fn poll_all<F, E>(running: &mut Vec<Pin<Box<F>>>, context: &mut Context<'_>, first_error: &mut Option<E>) -> bool
where
    F: Future<Output = Result<(), E>>,
{
    let before = running.len();
    running.retain_mut(|future| match future.as_mut().poll(context) {
        Poll::Pending => true,
        Poll::Ready(result) => {
            if let Err(error) = result {
                first_error.get_or_insert(error);
            }
            false
        }
    });
    running.len() < before
}
