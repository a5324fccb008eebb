//! Uses wakers and futures on other threads, in other executors, and after their executor has ended.
//!
//! An executor is on the stack of the thread that runs it; a later access would write to that stack.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Poll, Waker};

use hostile_contract::talk::{self, ExpReady, ImpReadyAfterCall, ImpStart};
use sip::channel::receive_async;
use sip::executor::{block_on, sleep_until, spawn};
use sip::{Deadline, thread};

sip::startup!();

/// Makes the attempt, and checks that executors still work.
pub fn main(startup: Startup) -> i32 {
    for _ in 0..20 {
        match startup.attempt {
            0 => after_the_end(),
            1 => from_many_threads(),
            2 => in_another_executor(),
            3 => forgotten_futures(),
            4 => inside_each_other(8),
            other => panic!("there is no attempt {other}"),
        }
        if !executors_work() {
            return 1;
        }
    }
    0
}

type Conversation = (talk::Imp<talk::states::Ready>, talk::Exp<talk::states::Ready>);

fn conversation() -> Conversation {
    let (client, server) = talk::new_channel().expect("a channel");
    let server = server.success();
    let ImpStart::Success { next: client } = client.receive() else { panic!("the channel closed") };
    (client, server)
}

fn executors_work() -> bool {
    let (client, server) = conversation();
    let answer = block_on(async move {
        drop(spawn(async move {
            if let ExpReady::Call { value, next } = server.receive_async().await {
                drop(next.answer(value + 1));
            }
        }));
        match client.call(41).receive_async().await {
            ImpReadyAfterCall::Answer { value, .. } => value,
            ImpReadyAfterCall::ChannelClosed(_) => 0,
        }
    });
    answer == Ok(42)
}

/// Wakers of a main future, a task, a timer and a receive.
fn wakers() -> Vec<Waker> {
    let wakers = Rc::new(RefCell::new(Vec::new()));
    let keep = |wakers: &Rc<RefCell<Vec<Waker>>>| {
        let wakers = Rc::clone(wakers);
        poll_fn(move |context| {
            wakers.borrow_mut().push(context.waker().clone());
            Poll::Ready(())
        })
    };
    let ran = block_on(async {
        keep(&wakers).await;
        for _ in 0..4 {
            spawn(keep(&wakers)).await;
        }
        sleep_until(Deadline::after_ns(1000)).await;
        keep(&wakers).await;
    });
    ran.expect("an executor");
    wakers.take()
}

fn after_the_end() {
    let kept = wakers();
    let on_thread = kept.clone();
    let thread = thread::spawn(move || on_thread.iter().for_each(Waker::wake_by_ref)).expect("a thread");
    kept.iter().for_each(Waker::wake_by_ref);
    thread.join().expect("it ends");
    // In the middle of another executor, and after their own thread has ended.
    let of_thread = thread::spawn(wakers).expect("a thread").join().expect("it ends");
    let woken = block_on(async {
        kept.into_iter().chain(of_thread).for_each(Waker::wake);
        spawn(async {}).await;
    });
    woken.expect("an executor");
}

fn from_many_threads() {
    let mut threads = Vec::new();
    let ran = block_on(poll_fn(|context| {
        if threads.len() == 16 {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        threads.push(thread::spawn(move || (0..500).for_each(|_| waker.wake_by_ref())).expect("a thread"));
        Poll::Pending
    }));
    ran.expect("an executor");
    threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
}

type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

/// Polled once, so that it is registered with the running executor.
fn begin<T>(mut future: Boxed<T>) -> Boxed<T> {
    let mut begun = None;
    block_on(poll_fn(|context| {
        assert!(future.as_mut().poll(context).is_pending(), "nothing has been sent");
        Poll::Ready(())
    }))
    .expect("an executor");
    begun.get_or_insert(future);
    begun.expect("it was put there")
}

/// A wait that began in one executor continues in another, after the first has ended.
fn in_another_executor() {
    let (client, server) = conversation();
    let waiting = begin(Box::pin(receive_async(server)));
    let sleeping = begin(Box::pin(sleep_until(Deadline::after_ms(1))));
    let sent = client.call(1);
    let got = block_on(async {
        sleeping.await;
        waiting.await
    });
    assert!(matches!(got, Ok(ExpReady::Call { value: 1, .. })), "the message is lost");
    drop(sent);
}

/// Leaked waits stay with an executor that has ended.
fn forgotten_futures() {
    let (client, server) = conversation();
    core::mem::forget(begin(Box::pin(receive_async(server))));
    core::mem::forget(begin(Box::pin(sleep_until(Deadline::NEVER))));
    drop(client.call(1));
    let (client, server) = conversation();
    let ran = block_on(async move {
        core::mem::forget(spawn(async move { drop(server.receive_async().await) }));
        drop(client.call(1));
    });
    ran.expect("an executor");
}

/// An executor inside a task of another, and so on.
fn inside_each_other(depth: u32) {
    let ran = block_on(async move {
        let task = spawn(async move {
            if depth > 0 {
                inside_each_other(depth - 1);
            }
        });
        sleep_until(Deadline::after_ns(1000)).await;
        task.await;
    });
    ran.expect("an executor");
}
