//! Acts of two processes that exchange a block for as long as both live.
//!
//! The block counts the exchanges in its first and last byte; every page between has a mark. So each side sees whether
//! it is whole, and whether a block that comes home has the borrower's writes or is as it was lent.

use conformance_contract::errand;
use errand::{ExpReady, ImpReadyAfterGive, ImpReadyAfterLend};
use sip::exheap::ExVec;

use crate::Stage;

/// The number of an act: the bytes of the block, whether it is lent, the exchanges (0: without end).
const BYTES: u64 = (1 << 32) - 1;
const LENT: u64 = 1 << 32;
const EXCHANGES_BIT: u32 = 40;

/// Distance of the marks, and their offset in it.
const PAGE_BYTES: usize = 4096;
const OFFSET: usize = 100;

fn marks(bytes: usize) -> impl Iterator<Item = (usize, u8)> {
    (OFFSET..bytes.saturating_sub(1)).step_by(PAGE_BYTES).map(|place| (place, (place / PAGE_BYTES) as u8 ^ 0x5a))
}

fn marked(bytes: usize) -> ExVec<u8> {
    let mut block = ExVec::new(bytes).expect("room for a block");
    for (place, mark) in marks(bytes) {
        block[place] = mark;
    }
    block
}

/// Checks the block except for its counts, which are returned.
fn counts(data: &[u8], bytes: usize) -> (u8, u8) {
    assert_eq!(data.len(), bytes, "the size of the block");
    assert!(marks(bytes).all(|(place, mark)| data[place] == mark), "the block changed on its way");
    (data[0], data[bytes - 1])
}

fn count_up(data: &mut [u8]) {
    let (first, last) = counts(data, data.len());
    assert_eq!(first, last, "the counts of a block that nobody writes to");
    let next = first.wrapping_add(1);
    data[0] = next;
    data[data.len() - 1] = next;
}

/// Sends the block until the receiver has ended.
pub(crate) fn there(mut stage: Stage) -> i32 {
    let (bytes, exchanges) = ((stage.number & BYTES) as usize, stage.number >> EXCHANGES_BIT);
    let mut client = Some(stage.client());
    let (mut data, mut done) = (marked(bytes), 0);
    while let Some(idle) = client.take().filter(|_| exchanges == 0 || done < exchanges) {
        let count = done as u8;
        let answer = if stage.number & LENT != 0 { lend(idle, data, count) } else { give(idle, data) };
        let Some((back, next)) = answer else { return 0 };
        done += 1;
        assert_eq!(counts(&back, bytes), (done as u8, done as u8), "each exchange counts once");
        (data, client) = (back, Some(next));
    }
    0
}

/// The block and the client, for the next exchange.
type Next = Option<(ExVec<u8>, errand::Imp<errand::states::Ready>)>;

fn give(client: errand::Imp<errand::states::Ready>, data: ExVec<u8>) -> Next {
    match client.give(data).receive() {
        ImpReadyAfterGive::GivenBack { data, next } => Some((data, next)),
        ImpReadyAfterGive::ChannelClosed(mut closed) => {
            assert!(closed.take_home().is_empty(), "a block that was given came home");
            None
        }
    }
}

fn lend(client: errand::Imp<errand::states::Ready>, data: ExVec<u8>, count: u8) -> Next {
    let bytes = data.len();
    match client.lend(data).receive() {
        ImpReadyAfterLend::Returned { data, next } => Some((data, next)),
        ImpReadyAfterLend::ChannelClosed(mut closed) => {
            let mut home = closed.take_home();
            assert_eq!(home.len(), 1, "one block was lent");
            let block = home.pop().and_then(|block| block.into_vec::<u8>().ok()).expect("the block keeps its type");
            let changed = count.wrapping_add(1);
            let (first, last) = counts(&block, bytes);
            // The borrower may have ended before it wrote, in between, and after.
            assert!(first == changed || first == count && last == count, "the first count is {first} after {count}");
            assert!(last == changed || last == count, "the last count is {last} after {count}");
            None
        }
    }
}

/// Returns blocks until the sender has ended.
pub(crate) fn back(mut stage: Stage) -> i32 {
    let bytes = (stage.number & BYTES) as usize;
    let mut server = stage.server();
    loop {
        server = match server.receive() {
            ExpReady::Give { mut data, next } => {
                assert_eq!(data.len(), bytes, "the size of the block");
                count_up(&mut data);
                next.given_back(data)
            }
            ExpReady::Lend { mut data, next } => {
                assert_eq!(data.len(), bytes, "the size of the block");
                count_up(&mut data);
                next.returned(data)
            }
            ExpReady::ChannelClosed(_) => return 0,
            _ => panic!("a message that nobody sends"),
        };
    }
}
