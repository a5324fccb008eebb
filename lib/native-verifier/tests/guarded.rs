//! Guard mode: code that leaves the checks to the addresses behind memory, and what it must not rely on them for.
mod common;

use common::Bad;
use iced_x86::IcedError;
use iced_x86::code_asm::*;
use native_verifier::Rule;
use wasm_record::layout::Bounds;

type Write = fn(&mut CodeAssembler) -> Result<(), IcedError>;

/// The index in `rsi` as a number of 32 bits, the address of memory in `rcx`.
fn based(a: &mut CodeAssembler) -> Result<(), IcedError> {
    a.mov(esi, esi)?;
    a.mov(rcx, qword_ptr(rdi))
}

/// Code that is accepted.
const GOOD: &[Write] = &[
    |a| {
        based(a)?;
        a.mov(eax, dword_ptr(rcx + rsi))?;
        a.mov(qword_ptr(rcx + rsi + 0x7fff_fff8), rax)?;
        a.ret()
    },
    // The largest index and offsets that end with the window.
    |a| {
        based(a)?;
        a.mov(rdx, (8u64 << 30) - (1 << 32))?;
        a.add(rdx, rcx)?;
        a.mov(al, byte_ptr(rdx + rsi))?;
        a.ret()
    },
    // A multiple of a number that is small.
    |a| {
        a.mov(rcx, qword_ptr(rdi))?;
        a.and(esi, 0xffff)?;
        a.mov(rax, qword_ptr(rcx + rsi * 8))?;
        a.ret()
    },
    // The address is the same after a call.
    |a| {
        a.push(rbx)?;
        a.push(r12)?;
        a.push(r13)?;
        a.mov(rbx, qword_ptr(rdi))?;
        a.mov(r12d, esi)?;
        a.call(common::HOST)?;
        a.mov(eax, dword_ptr(rbx + r12))?;
        a.pop(r13)?;
        a.pop(r12)?;
        a.pop(rbx)?;
        a.ret()
    },
];

#[test]
fn accesses_within_the_window_need_no_check() {
    for (number, write) in GOOD.iter().enumerate() {
        assert_eq!(Bad::guarded().judge(*write), Ok(()), "form {number}");
    }
}

#[test]
fn without_a_window_the_same_accesses_are_refused() {
    for (number, write) in GOOD.iter().enumerate() {
        let checked = Bad::new().judge(*write).expect_err("it is not checked");
        assert_eq!(checked.rule, Rule::Access, "form {number}");
        // A module without memory has no window: the address in its context is 0.
        let without = Bad::of("", Bounds::Guarded as u64).judge(*write).expect_err("there is no memory");
        assert_eq!(without.rule, Rule::Access, "form {number}");
    }
    let unknown = Bad::of("(memory 1)", 2).judge(|a| a.ret()).expect_err("there are no such bounds");
    assert_eq!(unknown.rule, Rule::Layout);
}

#[test]
fn what_may_leave_the_window_is_refused() {
    let bad: &[Write] = &[
        // An index of 64 bits.
        |a| {
            a.mov(rcx, qword_ptr(rdi))?;
            a.mov(al, byte_ptr(rcx + rsi))?;
            a.ret()
        },
        // One that is sign-extended.
        |a| {
            a.mov(rcx, qword_ptr(rdi))?;
            a.movsxd(rsi, esi)?;
            a.mov(al, byte_ptr(rcx + rsi))?;
            a.ret()
        },
        // An index of 32 bits that is changed afterwards.
        |a| {
            based(a)?;
            a.dec(rsi)?;
            a.mov(al, byte_ptr(rcx + rsi))?;
            a.ret()
        },
        // The sum of two indexes.
        |a| {
            based(a)?;
            a.mov(edx, edx)?;
            a.add(rsi, rdx)?;
            a.mov(eax, dword_ptr(rcx + rsi))?;
            a.ret()
        },
        // Multiples of the index.
        |a| {
            based(a)?;
            a.mov(al, byte_ptr(rcx + rsi * 2 + 2))?;
            a.ret()
        },
        |a| {
            based(a)?;
            a.mov(al, byte_ptr(rcx + rsi * 8))?;
            a.ret()
        },
        // A negative offset.
        |a| {
            based(a)?;
            a.mov(al, byte_ptr(rcx + rsi - 1))?;
            a.ret()
        },
        |a| {
            based(a)?;
            a.mov(al, byte_ptr(rcx - 0x7fff_ffff))?;
            a.ret()
        },
        // One that is too large by a byte; and so in two steps.
        |a| {
            based(a)?;
            a.mov(rdx, (8u64 << 30) - (1 << 32))?;
            a.add(rdx, rcx)?;
            a.mov(ax, word_ptr(rdx + rsi))?;
            a.ret()
        },
        |a| {
            based(a)?;
            a.lea(rdx, qword_ptr(rcx + rsi + 0x7fff_ffff))?;
            a.lea(rdx, qword_ptr(rdx + 0x7fff_ffff))?;
            a.mov(qword_ptr(rdx), rax)?;
            a.ret()
        },
        // The index is added twice.
        |a| {
            based(a)?;
            a.lea(rdx, qword_ptr(rcx + rsi))?;
            a.add(rdx, rsi)?;
            a.mov(al, byte_ptr(rdx + 2))?;
            a.ret()
        },
        // Another base: the size of memory, a table's address, a global's value, the index itself.
        |a| {
            based(a)?;
            a.mov(rcx, qword_ptr(rdi + 8))?;
            a.mov(al, byte_ptr(rcx + rsi))?;
            a.ret()
        },
        |a| {
            based(a)?;
            a.mov(rcx, qword_ptr(rdi + 32 + 64 * 16))?;
            a.mov(eax, dword_ptr(rcx + rsi * 4))?;
            a.ret()
        },
        |a| {
            based(a)?;
            a.mov(rcx, qword_ptr(rdi + 32 + 65 * 16))?;
            a.mov(al, byte_ptr(rcx + rsi))?;
            a.ret()
        },
        |a| {
            based(a)?;
            a.mov(al, byte_ptr(rsi + 0x1000))?;
            a.ret()
        },
        // Half of the address.
        |a| {
            based(a)?;
            a.mov(ecx, ecx)?;
            a.mov(al, byte_ptr(rcx + rsi))?;
            a.ret()
        },
        // Two addresses.
        |a| {
            based(a)?;
            a.add(rcx, rcx)?;
            a.mov(al, byte_ptr(rcx + rsi))?;
            a.ret()
        },
        // The index is of 32 bits on one way alone.
        |a| {
            let mut on = a.create_label();
            a.mov(rcx, qword_ptr(rdi))?;
            a.test(edx, edx)?;
            a.je(on)?;
            a.mov(esi, esi)?;
            a.set_label(&mut on)?;
            a.mov(al, byte_ptr(rcx + rsi))?;
            a.ret()
        },
        // It grows in a loop.
        |a| {
            let mut again = a.create_label();
            based(a)?;
            a.set_label(&mut again)?;
            a.mov(al, byte_ptr(rcx + rsi))?;
            a.add(rsi, 1)?;
            a.test(eax, eax)?;
            a.jne(again)?;
            a.ret()
        },
    ];
    for (number, write) in bad.iter().enumerate() {
        match Bad::guarded().judge(*write) {
            Err(found) if found.rule == Rule::Access => {}
            other => panic!("code {number}: {other:?}"),
        }
    }
}

#[test]
fn the_address_of_the_window_is_not_written() {
    let written = Bad::guarded().judge(|a| {
        a.mov(qword_ptr(rdi), rsi)?;
        a.ret()
    });
    assert_eq!(written.expect_err("it is read-only").rule, Rule::ReadOnly);
}
