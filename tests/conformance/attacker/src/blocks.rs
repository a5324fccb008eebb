//! Acts on exchange-heap blocks, own and borrowed.

use sip::Status;

use crate::Act;
use crate::messages::loan;
use crate::objects::{block, channel};
use crate::raw::{abi, must, refused, word};

pub(crate) const ACTS: &[(&str, Act)] = &[
    ("block-operations", |_| operations()),
    ("free-loan", |_| free_loan()),
    ("take-loan-apart", |_| take_loan_apart()),
];

/// Address and length of a block.
fn place(block: u64) -> (u64, u64) {
    must("heap_describe", &[block]);
    (word(0), word(1))
}

fn operations() -> i32 {
    let whole = block(640);
    let (address, _) = place(whole);
    assert_eq!(address % 64, 0, "blocks are aligned");
    for offset in [0, 1, 63, 65, 640, 641, 704, u64::MAX, u64::MAX - 63] {
        refused("heap_split", &[whole, offset], &[Status::BadArgument]);
    }
    let rest = must("heap_split", &[whole, 128]);
    assert_eq!((word(0), word(1)), (address + 128, 512), "the second part");
    assert_eq!(place(whole), (address, 128), "the first part");
    let third = must("heap_split", &[rest, 64]);
    refused("heap_attach", &[whole, whole], &[Status::BadArgument]);
    refused("heap_detach", &[whole], &[Status::NotFound]);
    assert_eq!(must("heap_attach", &[whole, rest]), 0, "the first child");
    assert_eq!(must("heap_attach", &[whole, third]), 1, "the second child");
    for child in [rest, third] {
        refused("heap_free", &[child], &[Status::BadHandle]);
        refused("heap_attach", &[child, whole], &[Status::BadHandle]);
        refused("heap_attach", &[whole, child], &[Status::BadHandle]);
    }
    assert_eq!(must("heap_detach", &[whole]), third, "the last one comes out first");
    must("heap_free", &[third]);
    refused("heap_free", &[third], &[Status::BadHandle]);
    must("heap_free", &[whole]);
    refused("heap_describe", &[rest], &[Status::BadHandle]);
    let byte = sip::abi::type_tag("byte");
    for bytes in [u64::MAX, u64::MAX - 63, 1 << 63, 1 << 40, (32 << 20) + 64] {
        refused("heap_allocate", &[bytes, byte], &[Status::BadArgument, Status::QuotaExceeded]);
    }
    let empty = block(0);
    refused("heap_split", &[empty, 0], &[Status::BadArgument]);
    must("heap_free", &[empty]);
    parts_are_whole()
}

/// A block whose parts are freed in arbitrary order leaks no part and frees none twice.
fn parts_are_whole() -> i32 {
    for round in 0..200u64 {
        let first = block(4096);
        let mut parts = alloc::vec![first];
        let mut last = first;
        for _ in 0..8 {
            last = must("heap_split", &[last, 64 * (1 + round % 6)]);
            parts.push(last);
        }
        while !parts.is_empty() {
            let chosen = round as usize * 7 % parts.len();
            must("heap_free", &[parts.swap_remove(chosen)]);
        }
    }
    0
}

/// Freeing a loan returns it; its lender has it together with the closure of the channel.
fn free_loan() -> i32 {
    let (importer, exporter, lent) = loan();
    must("heap_describe", &[lent]);
    assert_eq!(word(3), 1, "it is known to be lent");
    must("heap_free", &[lent]);
    refused("heap_free", &[lent], &[Status::BadHandle]);
    refused("channel_try_receive", &[importer], &[Status::WouldBlock]);
    must("channel_close", &[exporter]);
    refused("channel_receive", &[importer, u64::MAX], &[Status::Closed]);
    assert_eq!((word(0), word(1), word(3)), (1, lent, 256), "one block of 256 bytes came home");
    must("heap_describe", &[lent]);
    assert_eq!(word(3), 0, "it is lent no more");
    refused("channel_receive", &[importer, u64::MAX], &[Status::Closed]);
    assert_eq!(word(0), 0, "it came home once");
    must("heap_free", &[lent]);
    0
}

/// Blocks attached to a loan are lent with it.
fn take_loan_apart() -> i32 {
    let (importer, exporter) = channel("Errand");
    let (parent, child) = (block(256), block(128));
    must("heap_attach", &[parent, child]);
    crate::messages::send(importer, crate::messages::LEND, (0, 1, 0), &[parent, 0, 256]).expect("a loan is allowed");
    assert_eq!(crate::messages::receive(exporter), Ok(crate::messages::LEND), "the loan arrives");
    let lent = word(0);
    let own = block(64);
    refused("heap_split", &[lent, 64], &[Status::Lent]);
    refused("heap_detach", &[lent], &[Status::Lent]);
    refused("heap_attach", &[lent, own], &[Status::Lent]);
    refused("heap_attach", &[own, lent], &[Status::Lent]);
    must("channel_close", &[exporter]);
    must("heap_free", &[lent]);
    assert_eq!(abi("channel_receive", &[importer, u64::MAX]), Err(Status::Closed), "the borrower is gone");
    assert_eq!(must("heap_detach", &[word(1)]), child, "what was attached came home with it");
    0
}
