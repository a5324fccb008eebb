//! Futures with a deadline.

use core::future::Future;
use core::pin::{Pin, pin};
use core::task::{Context, Poll};

use sip::Deadline;
use sip::executor::{self, Sleep};

/// The output of `future`, or `None` at the deadline, which drops the future and closes its endpoints.
pub(crate) async fn limited<F: Future>(deadline: Deadline, future: F) -> Option<F::Output> {
    let future = pin!(future);
    Limited { future, sleep: executor::sleep_until(deadline) }.await
}

struct Limited<'a, F> {
    future: Pin<&'a mut F>,
    sleep: Sleep,
}

impl<F: Future> Future for Limited<'_, F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<F::Output>> {
        if let Poll::Ready(output) = self.future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        Pin::new(&mut self.sleep).poll(context).map(|()| None)
    }
}
