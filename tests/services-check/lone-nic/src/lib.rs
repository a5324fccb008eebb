//! Test SIP: a network card that sends into the void and receives nothing, so that a network stack has its loopback and
//! nothing else.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::{Poll, Waker};

use contracts::Packet;
use contracts::nic_device::NicFeatures;
use network::packets::{self, Filled};
use nic_server::{Card, Client, Description, Events, Refusal};
use sip::exheap::ExVec;

sip::startup!();

/// Serves the card until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    let card = Rc::new(LoneNic::default());
    let served = sip::executor::block_on(nic_server::accept(startup.clients.ready(), card));
    i32::from(served.is_err())
}

#[derive(Default)]
struct LoneNic {
    clients: Cell<u64>,
    is_open: Cell<bool>,
    /// Buffers for packets that never come.
    empty: RefCell<Vec<ExVec<u8>>>,
    sent: RefCell<VecDeque<ExVec<u8>>>,
    /// Who waits for the client's end.
    waiting: RefCell<Option<Waker>>,
}

impl Card for LoneNic {
    const MAX_PACKETS: u32 = 64;

    fn is_open(&self) -> bool {
        self.is_open.get()
    }

    fn open(&self) -> (u64, Description) {
        self.is_open.set(true);
        self.clients.set(self.clients.get() + 1);
        let (mac, features) = ([2, 0, 0, 0, 0, 1], NicFeatures::empty());
        (self.clients.get(), Description { mac, mtu: 1500, link_bits_per_s: u64::MAX, features })
    }

    fn close(&self, client: u64) {
        if client == self.clients.get() {
            self.is_open.set(false);
            self.empty.borrow_mut().clear();
            self.sent.borrow_mut().clear();
            if let Some(waiting) = self.waiting.take() {
                waiting.wake();
            }
        }
    }

    fn give(&self, client: &Client, buffer: ExVec<u8>) -> Result<(), ExVec<u8>> {
        let mut empty = self.empty.borrow_mut();
        if empty.len() >= client.receive_packets {
            return Err(buffer);
        }
        empty.push(buffer);
        Ok(())
    }

    fn send(&self, client: &Client, _: &Packet, buffer: ExVec<u8>) -> Result<(), (ExVec<u8>, Refusal)> {
        let mut sent = self.sent.borrow_mut();
        if sent.len() >= client.transmit_packets {
            return Err((buffer, Refusal::Full));
        }
        sent.push_back(buffer);
        Ok(())
    }

    fn flush(&self, _: &Client) {}

    fn collect(&self, client: &Client, taken: &mut Vec<Filled>, most: usize) {
        while taken.len() < most {
            let Some(buffer) = self.take_sent(client) else { return };
            taken.push((packets::empty(), buffer));
        }
    }

    fn take_received(&self, _: &Client) -> Option<Filled> {
        None
    }

    fn take_sent(&self, _: &Client) -> Option<ExVec<u8>> {
        self.sent.borrow_mut().pop_front()
    }

    async fn events(&self, client: u64, _: &mut Events) -> bool {
        poll_fn(|context| {
            if self.is_open.get() && client == self.clients.get() {
                *self.waiting.borrow_mut() = Some(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(false)
        })
        .await
    }
}
