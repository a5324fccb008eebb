//! Executors: tasks that wait for messages and deadlines, futures that are dropped or polled elsewhere, and wakers
//! that outlive their executor or move to other threads.

use alloc::boxed::Box;
use alloc::rc::Rc;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use sip::Deadline;
use sip::channel::receive_async;
use sip::executor::{block_on, gone, sleep_until, spawn};

use crate::hostile::{self, Hostile};
use crate::messages::{self, Channel};
use crate::world::World;

/// A future that is polled as long as others of its kind.
type Boxed = Pin<Box<dyn Future<Output = ()>>>;

/// Runs an executor for a short time.
pub(crate) fn step(world: &Rc<World>) {
    for waker in core::iter::from_fn(|| world.numbers.once_in(3).then(|| world.take(&world.wakers)).flatten()).take(3) {
        if world.numbers.once_in(3) {
            let _ = sip::thread::spawn(move || waker.wake()).map(|thread| thread.join());
        } else {
            waker.wake();
        }
    }
    let main = main_task(Rc::clone(world));
    let _ = block_on(main);
}

async fn main_task(world: Rc<World>) {
    for _ in 0..world.numbers.below(4) {
        let task = spawn(side_task(Rc::clone(&world)));
        if world.numbers.once_in(4) {
            until(&world, Box::pin(task)).await;
        }
    }
    until(&world, Box::pin(side_task(Rc::clone(&world)))).await;
}

/// Waits for a message, or yields.
async fn side_task(world: Rc<World>) {
    match world.numbers.below(4) {
        0 => sleep_until(Deadline::after_ns(world.numbers.next() % 20_000)).await,
        1 => world.callback(),
        2 => {
            let Some(channel) = world.take(&world.channels) else { return };
            until_gone(&world, channel).await;
        }
        _ => {
            let Some(channel) = world.take(&world.channels) else { return };
            if channel.sends_next() || channel.loan.is_some() {
                return world.add_channel(channel);
            }
            let receive = receive_async(Hostile::new(&world, channel));
            let (channel, what) = receive.await;
            messages::received(&world, channel, what);
        }
    }
}

async fn until_gone(world: &Rc<World>, channel: Channel) {
    let endpoint = Hostile::new(world, channel);
    {
        let mut wait = Box::pin(gone(&endpoint));
        Once { world, future: wait.as_mut() }.await;
    }
    world.add_channel(endpoint.into_channel());
}

/// Polls a future until it is complete or a deadline has passed; then it is dropped, or leaked.
async fn until(world: &Rc<World>, future: Boxed) {
    Race { world, future: Some(future), limit: Box::pin(sleep_until(Deadline::after_ns(100_000))) }.await;
}

struct Race<'a> {
    world: &'a Rc<World>,
    future: Option<Boxed>,
    limit: Boxed,
}

impl Future for Race<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let world = Rc::clone(self.world);
        if world.numbers.once_in(3) {
            world.add(&world.wakers, context.waker().clone());
        }
        // Foreign wakers, before the right one.
        for waker in hostile::wakers(&world) {
            if let Some(future) = &mut self.future
                && future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
            {
                return Poll::Ready(());
            }
        }
        let is_done = self.future.as_mut().is_none_or(|future| future.as_mut().poll(context).is_ready());
        if is_done || self.limit.as_mut().poll(context).is_ready() {
            if world.numbers.once_in(30) {
                core::mem::forget(self.future.take());
            }
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

/// Polls a future once.
struct Once<'a, F: Future> {
    world: &'a Rc<World>,
    future: Pin<&'a mut F>,
}

impl<F: Future> Future for Once<'_, F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let _ = self.future.as_mut().poll(context);
        self.world.callback();
        Poll::Ready(())
    }
}
