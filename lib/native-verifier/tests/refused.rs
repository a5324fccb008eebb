//! Bad code, written by hand, for each rule: what a compiler must never make.
mod common;

use common::{BUILTIN, Bad, HOST};
use iced_x86::code_asm::*;
use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};
use native_verifier::Rule;

type Write = fn(&mut CodeAssembler) -> Result<(), IcedError>;

/// Offset of the size of linear memory, of the first table's words, of the first global.
const SIZE: i32 = 8;
const TABLE: i32 = 32 + 64 * 16;
const GLOBAL: i32 = TABLE + 16;

/// Address of the array of the functions' addresses.
const ARRAY: u64 = common::BASE + 64;

/// An address of the image, to `rax`.
fn address(a: &mut CodeAssembler, address: u64) -> Result<(), IcedError> {
    let place = MemoryOperand::with_base_displ(Register::RIP, address as i64);
    a.add_instruction(Instruction::with2(Code::Lea_r64_m, Register::RAX, place)?)
}

/// The check of an access of 4 bytes at `rsi`: as the compiler writes it, up to its branch.
fn compared(a: &mut CodeAssembler) -> Result<(), IcedError> {
    a.mov(esi, esi)?;
    a.lea(rax, qword_ptr(rsi + 4))?;
    a.cmp(rax, qword_ptr(rdi + SIZE))
}

/// The check of an access of 8 bytes at `rdx`, eight times a number that is below 32.
fn compared_multiple(a: &mut CodeAssembler) -> Result<(), IcedError> {
    a.and(esi, 31)?;
    a.lea(rdx, qword_ptr(rsi * 8))?;
    a.lea(r8, qword_ptr(rsi * 8 + 16))?;
    a.lea(rax, qword_ptr(rdx + 8))?;
    a.cmp(rax, qword_ptr(rdi + SIZE))
}

fn trapping(a: &mut CodeAssembler, rest: Write) -> Result<(), IcedError> {
    let mut trap = a.create_label();
    a.ja(trap)?;
    rest(a)?;
    a.ret()?;
    a.set_label(&mut trap)?;
    a.ud2()
}

/// A return, and behind it a bad access, to which a branch goes.
fn behind(
    a: &mut CodeAssembler,
    branch: impl FnOnce(&mut CodeAssembler, CodeLabel) -> Result<(), IcedError>,
) -> Result<(), IcedError> {
    let mut bad = a.create_label();
    branch(a, bad)?;
    a.ret()?;
    a.set_label(&mut bad)?;
    a.mov(eax, dword_ptr(rsi))?;
    a.ret()
}

#[test]
fn what_constants_seem_to_decide() {
    refused(
        Rule::Access,
        &[
            // It is taken.
            |a| {
                a.mov(eax, 5)?;
                a.cmp(eax, 3)?;
                behind(a, |a, bad| a.ja(bad))
            },
            |a| {
                a.mov(eax, 5)?;
                a.cmp(eax, 5)?;
                behind(a, |a, bad| a.je(bad))
            },
            // The number is unsigned; the upper half is not compared; all of it is.
            |a| {
                a.mov(rax, -1i64)?;
                a.cmp(rax, 3)?;
                behind(a, |a, bad| a.ja(bad))
            },
            |a| {
                a.mov(rax, 0x1_0000_0005u64)?;
                a.cmp(eax, 5)?;
                behind(a, |a, bad| a.je(bad))
            },
            |a| {
                a.mov(rax, 0x1_0000_0005u64)?;
                a.cmp(rax, 5)?;
                behind(a, |a, bad| a.jne(bad))
            },
            // A byte is compared.
            |a| {
                a.mov(eax, 0x105)?;
                a.cmp(al, 5)?;
                behind(a, |a, bad| a.je(bad))
            },
            // As signed numbers.
            |a| {
                a.mov(eax, -1)?;
                a.cmp(eax, 3)?;
                behind(a, |a, bad| a.jl(bad))
            },
            // The flags are those of another instruction.
            |a| {
                a.mov(eax, 5)?;
                a.cmp(eax, 3)?;
                a.xor(edx, edx)?;
                behind(a, |a, bad| a.jbe(bad))
            },
            // It was a constant on one way alone.
            |a| {
                let mut join = a.create_label();
                a.mov(eax, 5)?;
                a.test(esi, esi)?;
                a.je(join)?;
                a.mov(eax, 2)?;
                a.set_label(&mut join)?;
                a.cmp(eax, 3)?;
                behind(a, |a, bad| a.jbe(bad))
            },
        ],
    );
}

#[test]
fn the_forms_that_the_bad_ones_are_made_of_are_accepted() {
    let good: &[Write] = &[
        |a| a.ret(),
        |a| {
            compared(a)?;
            trapping(a, |a| {
                a.mov(rcx, qword_ptr(rdi))?;
                a.mov(eax, dword_ptr(rcx + rsi))
            })
        },
        |a| {
            compared_multiple(a)?;
            trapping(a, |a| {
                a.mov(rcx, qword_ptr(rdi))?;
                a.mov(rax, qword_ptr(rcx + rdx))?;
                // It is the same number, less than what was checked.
                a.mov(rax, qword_ptr(rcx + r8 - 16))
            })
        },
        |a| {
            a.push(rbx)?;
            a.mov(rbx, rdi)?;
            a.call(HOST)?;
            a.mov(rdi, rbx)?;
            a.call(BUILTIN)?;
            a.pop(rbx)?;
            a.ret()
        },
        |a| {
            a.mov(dword_ptr(rdi + GLOBAL), esi)?;
            a.ret()
        },
        // Constants decide that nothing comes to what is bad.
        |a| {
            a.mov(eax, 5)?;
            a.cmp(eax, 3)?;
            behind(a, |a, bad| a.jbe(bad))
        },
        |a| {
            a.mov(rax, -1i64)?;
            a.cmp(rax, 3)?;
            behind(a, |a, bad| a.jb(bad))
        },
        |a| {
            a.sub(rsp, 4096)?;
            a.mov(dword_ptr(rsp), 0)?;
            a.sub(rsp, 4096)?;
            a.mov(dword_ptr(rsp), 0)?;
            a.add(rsp, 8192)?;
            a.ret()
        },
    ];
    for (number, write) in good.iter().enumerate() {
        assert_eq!(Bad::new().judge(*write), Ok(()), "form {number}");
    }
}

/// Each is refused for the rule.
fn refused(rule: Rule, bad: &[Write]) {
    for (number, write) in bad.iter().enumerate() {
        match Bad::new().judge(*write) {
            Err(found) if found.rule == rule => {}
            other => panic!("code {number} for {rule:?}: {other:?}"),
        }
    }
}

#[test]
fn accesses() {
    refused(
        Rule::Access,
        &[
            // Without a check.
            |a| {
                a.mov(rcx, qword_ptr(rdi))?;
                a.mov(eax, dword_ptr(rcx + rsi))?;
                a.ret()
            },
            // The check is of fewer bytes.
            |a| {
                compared(a)?;
                trapping(a, |a| {
                    a.mov(rcx, qword_ptr(rdi))?;
                    a.mov(rax, qword_ptr(rcx + rsi))
                })
            },
            // It is of a smaller offset.
            |a| {
                compared(a)?;
                trapping(a, |a| {
                    a.mov(rcx, qword_ptr(rdi))?;
                    a.mov(al, byte_ptr(rcx + rsi + 4))
                })
            },
            // A negative offset.
            |a| {
                compared(a)?;
                trapping(a, |a| {
                    a.mov(rcx, qword_ptr(rdi))?;
                    a.mov(al, byte_ptr(rcx + rsi - 1))
                })
            },
            // The index is changed after the check.
            |a| {
                compared(a)?;
                trapping(a, |a| {
                    a.mov(rcx, qword_ptr(rdi))?;
                    a.inc(rsi)?;
                    a.mov(al, byte_ptr(rcx + rsi))
                })
            },
            // The index is not of 32 bits: its sum wraps.
            |a| {
                a.lea(rax, qword_ptr(rsi + 4))?;
                a.cmp(rax, qword_ptr(rdi + SIZE))?;
                trapping(a, |a| {
                    a.mov(rcx, qword_ptr(rdi))?;
                    a.mov(eax, dword_ptr(rcx + rsi))
                })
            },
            // Only the lower half is compared.
            |a| {
                a.mov(esi, esi)?;
                a.lea(rax, qword_ptr(rsi + 4))?;
                a.cmp(eax, dword_ptr(rdi + SIZE))?;
                trapping(a, |a| {
                    a.mov(rcx, qword_ptr(rdi))?;
                    a.mov(eax, dword_ptr(rcx + rsi))
                })
            },
            // The flags are those of another instruction.
            |a| {
                compared(a)?;
                a.xor(edx, edx)?;
                trapping(a, |a| {
                    a.mov(rcx, qword_ptr(rdi))?;
                    a.mov(eax, dword_ptr(rcx + rsi))
                })
            },
            // The access is where the check failed.
            |a| {
                let mut out = a.create_label();
                compared(a)?;
                a.ja(out)?;
                a.ret()?;
                a.set_label(&mut out)?;
                a.mov(rcx, qword_ptr(rdi))?;
                a.mov(eax, dword_ptr(rcx + rsi))?;
                a.ret()
            },
            // A way around the check.
            |a| {
                let mut access = a.create_label();
                a.mov(rcx, qword_ptr(rdi))?;
                a.test(edx, edx)?;
                a.je(access)?;
                compared(a)?;
                a.jbe(access)?;
                a.ud2()?;
                a.set_label(&mut access)?;
                a.mov(eax, dword_ptr(rcx + rsi))?;
                a.ret()
            },
            // A loop whose index grows beyond the check.
            |a| {
                let mut again = a.create_label();
                let mut trap = a.create_label();
                compared(a)?;
                a.ja(trap)?;
                a.mov(rcx, qword_ptr(rdi))?;
                a.set_label(&mut again)?;
                a.mov(eax, dword_ptr(rcx + rsi))?;
                a.add(rsi, 1)?;
                a.cmp(rsi, 100)?;
                a.jne(again)?;
                a.ret()?;
                a.set_label(&mut trap)?;
                a.ud2()
            },
            // The address of memory is of before a call.
            |a| {
                a.push(rbx)?;
                a.mov(rbx, qword_ptr(rdi))?;
                a.call(HOST)?;
                a.mov(eax, dword_ptr(rbx))?;
                a.pop(rbx)?;
                a.ret()
            },
            // Memory of another's: an address that a number was made into.
            |a| {
                a.mov(eax, dword_ptr(rsi))?;
                a.ret()
            },
            // The size of a table, in entries, for one of memory.
            |a| {
                a.mov(esi, esi)?;
                a.cmp(rsi, qword_ptr(rdi + TABLE + 8))?;
                trapping(a, |a| {
                    a.mov(rcx, qword_ptr(rdi + TABLE))?;
                    a.mov(eax, dword_ptr(rcx + rsi * 4))
                })
            },
            // The runtime's own words.
            |a| {
                a.mov(rax, qword_ptr(rdi + 16))?;
                a.ret()
            },
            // Behind the context; before it.
            |a| {
                a.mov(rax, qword_ptr(rdi + GLOBAL + 16))?;
                a.ret()
            },
            |a| {
                a.mov(rax, qword_ptr(rdi - 8))?;
                a.ret()
            },
            // The context at an index.
            |a| {
                a.mov(esi, esi)?;
                a.mov(rax, qword_ptr(rdi + rsi))?;
                a.ret()
            },
            // Below the stack pointer, and above the frame.
            |a| {
                a.mov(qword_ptr(rsp - 8), rsi)?;
                a.ret()
            },
            |a| {
                a.mov(rax, qword_ptr(rsp + 8))?;
                a.ret()
            },
            // The image beyond its data.
            |a| {
                address(a, HOST)?;
                a.mov(rax, qword_ptr(rax))?;
                a.ret()
            },
            // The functions' addresses at an index that is not checked.
            |a| {
                address(a, ARRAY)?;
                a.mov(esi, esi)?;
                a.mov(rax, qword_ptr(rax + rsi * 8))?;
                a.ret()
            },
        ],
    );
}

#[test]
fn multiples() {
    refused(
        Rule::Access,
        &[
            // Beyond what was checked.
            |a| {
                compared_multiple(a)?;
                trapping(a, |a| {
                    a.mov(rcx, qword_ptr(rdi))?;
                    a.mov(rax, qword_ptr(rcx + rdx + 1))
                })
            },
            // The same multiple, and more.
            |a| {
                compared_multiple(a)?;
                trapping(a, |a| {
                    a.mov(rcx, qword_ptr(rdi))?;
                    a.mov(rax, qword_ptr(rcx + r8))
                })
            },
            // The number of which it is a multiple changed in between.
            |a| {
                compared_multiple(a)?;
                trapping(a, |a| {
                    a.mov(rcx, qword_ptr(rdi))?;
                    a.inc(rsi)?;
                    a.lea(rdx, qword_ptr(rsi * 8))?;
                    a.mov(rax, qword_ptr(rcx + rdx))
                })
            },
            // The multiple may wrap.
            |a| {
                a.lea(rdx, qword_ptr(rsi * 8))?;
                a.lea(rax, qword_ptr(rdx + 8))?;
                a.cmp(rax, qword_ptr(rdi + SIZE))?;
                trapping(a, |a| {
                    a.mov(rcx, qword_ptr(rdi))?;
                    a.mov(rax, qword_ptr(rcx + rdx))
                })
            },
            // Another multiple was checked.
            |a| {
                a.and(esi, 31)?;
                a.lea(rdx, qword_ptr(rsi * 8))?;
                a.lea(rax, qword_ptr(rsi * 4 + 8))?;
                a.cmp(rax, qword_ptr(rdi + SIZE))?;
                trapping(a, |a| {
                    a.mov(rcx, qword_ptr(rdi))?;
                    a.mov(rax, qword_ptr(rcx + rdx))
                })
            },
            // The multiple was checked on one of two ways alone.
            |a| {
                let mut unchecked = a.create_label();
                a.and(esi, 31)?;
                a.lea(rdx, qword_ptr(rsi * 8))?;
                a.lea(rax, qword_ptr(rdx + 8))?;
                a.test(esi, esi)?;
                a.je(unchecked)?;
                a.cmp(rax, qword_ptr(rdi + SIZE))?;
                trapping(a, |a| a.nop())?;
                a.set_label(&mut unchecked)?;
                a.mov(rcx, qword_ptr(rdi))?;
                a.mov(rax, qword_ptr(rcx + rdx))?;
                a.ret()
            },
        ],
    );
}

#[test]
fn what_is_read_only() {
    refused(
        Rule::ReadOnly,
        &[
            // The size and address of memory, and of a table.
            |a| {
                a.mov(qword_ptr(rdi + SIZE), rsi)?;
                a.ret()
            },
            |a| {
                a.mov(qword_ptr(rdi), rsi)?;
                a.ret()
            },
            |a| {
                a.add(qword_ptr(rdi + TABLE), rsi)?;
                a.ret()
            },
            |a| {
                a.movdqu(xmmword_ptr(rdi + GLOBAL - 8), xmm0)?;
                a.ret()
            },
            // The runtime's word.
            |a| {
                a.mov(qword_ptr(rdi + 16), rsi)?;
                a.ret()
            },
            // The sealed arrays.
            |a| {
                address(a, ARRAY)?;
                a.mov(qword_ptr(rax), rsi)?;
                a.ret()
            },
        ],
    );
}

#[test]
fn calls_and_jumps() {
    refused(
        Rule::Call,
        &[
            // Another address of the template; the middle of a function; an entry.
            |a| {
                a.push(rbx)?;
                a.call(HOST + 4)?;
                a.pop(rbx)?;
                a.ret()
            },
            |a| {
                a.push(rbx)?;
                a.call(common::Bad::CODE + 1)?;
                a.pop(rbx)?;
                a.ret()
            },
            |a| {
                a.push(rbx)?;
                a.call(common::Bad::ENTRY)?;
                a.pop(rbx)?;
                a.ret()
            },
            // An address that was made of a number, or read from memory.
            |a| {
                a.push(rbx)?;
                a.call(rsi)?;
                a.pop(rbx)?;
                a.ret()
            },
            |a| {
                a.push(rbx)?;
                a.call(qword_ptr(rdi + GLOBAL))?;
                a.pop(rbx)?;
                a.ret()
            },
            // Without the context.
            |a| {
                a.push(rbx)?;
                a.mov(rdi, rsi)?;
                a.call(HOST)?;
                a.pop(rbx)?;
                a.ret()
            },
            |a| {
                a.push(rbx)?;
                a.add(rdi, 16)?;
                a.call(HOST)?;
                a.pop(rbx)?;
                a.ret()
            },
            // A function that was looked up, of a signature that was not compared.
            |a| {
                let mut trap = a.create_label();
                a.push(rbx)?;
                a.mov(esi, esi)?;
                a.cmp(esi, 1)?;
                a.jae(trap)?;
                address(a, ARRAY)?;
                a.mov(rax, qword_ptr(rax + rsi * 8))?;
                a.call(rax)?;
                a.pop(rbx)?;
                a.ret()?;
                a.set_label(&mut trap)?;
                a.ud2()
            },
        ],
    );
    refused(
        Rule::Jump,
        &[
            |a| a.jmp(HOST),
            |a| a.jmp(common::Bad::CODE + 1),
            |a| a.jmp(common::Bad::ENTRY),
            |a| {
                a.test(esi, esi)?;
                a.je(HOST)?;
                a.ret()
            },
            // Past the end.
            |a| a.mov(eax, 1),
            |a| {
                a.push(rbx)?;
                a.call(HOST)
            },
        ],
    );
    refused(Rule::Call, &[|a| a.jmp(rsi)]);
}

#[test]
fn stack_and_returns() {
    refused(
        Rule::Return,
        &[
            // Not balanced; the wrong address; arguments that there are not.
            |a| {
                a.push(rbx)?;
                a.ret()
            },
            |a| {
                a.pop(rax)?;
                a.push(rsi)?;
                a.ret()
            },
            |a| {
                a.mov(qword_ptr(rsp), rsi)?;
                a.ret()
            },
            |a| {
                a.add(byte_ptr(rsp), 1)?;
                a.ret()
            },
            |a| a.ret_1(16),
            // A preserved register is changed, or restored from another's place.
            |a| {
                a.mov(rbx, rsi)?;
                a.ret()
            },
            |a| {
                a.push(rbx)?;
                a.push(r12)?;
                a.pop(rbx)?;
                a.pop(r12)?;
                a.ret()
            },
            |a| {
                a.push(rbp)?;
                a.mov(rbp, rsp)?;
                a.movdqu(xmmword_ptr(rsp), xmm0)?;
                a.pop(rbp)?;
                a.ret()
            },
        ],
    );
    refused(
        Rule::Stack,
        &[
            // A frame that is not probed, or in steps of more than a page.
            |a| {
                a.sub(rsp, 8192)?;
                a.mov(dword_ptr(rsp), 0)?;
                a.add(rsp, 8192)?;
                a.ret()
            },
            |a| {
                a.sub(rsp, 4096 + 8)?;
                a.call(HOST)?;
                a.add(rsp, 4096 + 8)?;
                a.ret()
            },
            // Not aligned at a call.
            |a| {
                a.call(HOST)?;
                a.ret()
            },
            // The stack pointer is made of a number; or differs where ways meet.
            |a| {
                a.mov(rsp, rsi)?;
                a.ret()
            },
            |a| {
                a.sub(rsp, rsi)?;
                a.ret()
            },
            |a| {
                let mut out = a.create_label();
                a.test(esi, esi)?;
                a.je(out)?;
                a.push(rbx)?;
                a.set_label(&mut out)?;
                a.ret()
            },
            // Above the frame.
            |a| {
                a.add(rsp, 16)?;
                a.ret()
            },
        ],
    );
}

#[test]
fn instructions() {
    refused(
        Rule::Instruction,
        &[
            |a| a.syscall(),
            |a| a.mov(fs, si),
            |a| a.movq(mm0, rsi),
            |a| a.rep().movsb(),
            |a| a.stosq(),
            |a| a.maskmovdqu(xmm0, xmm1),
            |a| a.pushfq(),
            |a| a.popfq(),
            |a| a.std(),
            |a| a.leave(),
            |a| a.enter(16, 1),
            |a| a.mov(eax, dword_ptr(esi)),
            |a| a.lock().inc(qword_ptr(rdi + GLOBAL)),
            |a| a.bts(qword_ptr(rdi + GLOBAL), rsi),
            |a| a.xlatb(),
            |a| a.fld(qword_ptr(rdi + GLOBAL)),
            |a| a.db(&[0x64, 0x48, 0x8B, 0x07]),
            |a| a.db(&[0x66, 0xC3]),
            |a| a.db(&[0x06]),
        ],
    );
}
