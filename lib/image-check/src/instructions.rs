//! The instruction check: allowed code of an image.
//!
//! Allowed is what a compiler emits for safe Rust on x86-64, listed below. Everything else is rejected: instructions
//! that enter the kernel or a debugger, access ports, control or segment registers, change a mode on which the kernel
//! relies (direction flag, trap flag, floating-point control), or have state that the kernel does not save per thread
//! (x87, AVX, shadow stacks, transactions), or read what the kernel does not know of (processor, cycle counter, random
//! numbers), so that a run depends on nothing but its calls; and any access through the FS or GS base. `ud2` and
//! `int3`, which only end the program, are allowed.
//!
//! Deliberately not here: targets of indirect branches. That they are valid is guaranteed by the type system.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use crate::ImageError;
use crate::common_instructions::common;

const OPERAND_SIZE_PREFIX: u8 = 0x66;

/// The start addresses of all instructions of an image.
pub(crate) struct Boundaries {
    first: u64,
    bits: Vec<u64>,
}

impl Boundaries {
    fn new(span: &Range<u64>) -> Boundaries {
        let count = (span.end - span.start).div_ceil(64) as usize;
        Boundaries { first: span.start, bits: vec![0; count] }
    }

    fn insert(&mut self, address: u64) {
        let index = (address - self.first) as usize;
        if let Some(word) = self.bits.get_mut(index / 64) {
            *word |= 1 << (index % 64);
        }
    }

    /// Whether an instruction begins at the address.
    pub(crate) fn contains(&self, address: u64) -> bool {
        let index = address.wrapping_sub(self.first);
        let word = usize::try_from(index / 64).ok().and_then(|word| self.bits.get(word));
        word.is_some_and(|word| word >> (index % 64) & 1 != 0)
    }
}

/// A range of code, and the address of its first byte.
pub(crate) struct Stretch<'a> {
    pub(crate) address: u64,
    pub(crate) bytes: &'a [u8],
}

/// Instructions and branches checked between calls of `pause`.
const INSTRUCTIONS: usize = 4096;

/// Decodes all instructions of the ranges, which lie within `span`, and rejects forbidden ones. `symbol` names the
/// function at an address, for messages; `pause` is called regularly.
pub(crate) fn check(
    span: &Range<u64>,
    stretches: &[Stretch<'_>],
    symbol: &dyn Fn(u64) -> Option<String>,
    pause: &dyn Fn(),
) -> Result<Boundaries, ImageError> {
    let mut seen = 0;
    let mut boundaries = Boundaries::new(span);
    let mut branches = Vec::new();
    let mut instruction = Instruction::default();
    for stretch in stretches {
        let mut decoder = Decoder::with_ip(64, stretch.bytes, stretch.address, DecoderOptions::NONE);
        let mut start = 0;
        while let Some(rest) = stretch.bytes.get(start..).filter(|rest| !rest.is_empty()) {
            let address = stretch.address + start as u64;
            seen += 1;
            if seen % INSTRUCTIONS == 0 {
                pause();
            }
            boundaries.insert(address);
            if let Some(known) = common(rest) {
                start += known.bytes;
                if let Some(distance) = known.branch {
                    let target = (stretch.address + start as u64).wrapping_add_signed(distance.into());
                    branches.push((address, target));
                }
                continue;
            }
            // The position is within the bytes, so this cannot fail.
            let _ = decoder.set_position(start);
            decoder.set_ip(address);
            decoder.decode_out(&mut instruction);
            let bytes = rest.get(..instruction.len()).unwrap_or_default();
            judge(&instruction, bytes, symbol)?;
            if instruction.op0_kind() == OpKind::NearBranch64 {
                branches.push((address, instruction.near_branch64()));
            }
            start += instruction.len();
        }
    }
    for (number, (address, target)) in branches.into_iter().enumerate() {
        if number % INSTRUCTIONS == INSTRUCTIONS - 1 {
            pause();
        }
        if !boundaries.contains(target) {
            return Err(ImageError::BranchTarget { address, target, symbol: symbol(address) });
        }
    }
    Ok(boundaries)
}

pub(crate) fn judge(
    instruction: &Instruction,
    bytes: &[u8],
    symbol: &dyn Fn(u64) -> Option<String>,
) -> Result<(), ImageError> {
    let address = instruction.ip();
    let code = instruction.code();
    if instruction.is_invalid() {
        return Err(ImageError::UnknownInstruction { address, symbol: symbol(address) });
    }
    if matches!(instruction.segment_prefix(), Register::FS | Register::GS) && !stands_for_a_check(instruction) {
        return Err(ImageError::SegmentOverride { address, symbol: symbol(address) });
    }
    if let Some(bytes) = stack_step(instruction).filter(|&bytes| bytes > MAX_STACK_STEP_BYTES) {
        return Err(ImageError::StackStep { bytes, address, symbol: symbol(address) });
    }
    let name = if !allowed(code) {
        forbidden_form(code).map_or_else(|| format!("{:?}", code.mnemonic()).to_lowercase(), String::from)
    } else if changes_flow(instruction) && has_operand_size_prefix(bytes) {
        // Processors disagree on the length of such a branch.
        String::from("data16 branch")
    } else {
        return Ok(());
    };
    Err(ImageError::ForbiddenInstruction { name, address, symbol: symbol(address) })
}

/// Whether the instruction is a NOP of `cargo sing bench safety` in place of a check, in a machine built for it. The
/// segment override makes every other machine and tool refuse the image.
fn stands_for_a_check(instruction: &Instruction) -> bool {
    cfg!(feature = "bench-unchecked-images") && instruction.mnemonic() == Mnemonic::Nop
}

/// Maximum decrement of the stack pointer by one instruction. Compiled code probes each page of a larger frame, so a
/// stack overflow hits the guard page.
const MAX_STACK_STEP_BYTES: u64 = abi::limits::PAGE_BYTES as u64;

/// Decrement of the stack pointer by a constant: `sub`, `add` of a negative number, `lea`, and `and`, which aligns.
fn stack_step(instruction: &Instruction) -> Option<u64> {
    if instruction.op0_kind() != OpKind::Register || instruction.op0_register() != Register::RSP {
        return None;
    }
    let by = match (instruction.mnemonic(), instruction.op1_kind()) {
        (Mnemonic::Sub, OpKind::Immediate8to64 | OpKind::Immediate32to64) => {
            (instruction.immediate(1) as i64).checked_neg()?
        }
        (Mnemonic::Add | Mnemonic::And, OpKind::Immediate8to64 | OpKind::Immediate32to64) => {
            instruction.immediate(1) as i64
        }
        (Mnemonic::Lea, OpKind::Memory) if instruction.memory_base() == Register::RSP => {
            instruction.memory_displacement64() as i64
        }
        _ => return None,
    };
    (by < 0).then_some(by.unsigned_abs())
}

fn changes_flow(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Jmp | Mnemonic::Call | Mnemonic::Ret)
        || matches!(instruction.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64)
}

/// Whether 0x66 is among the prefixes.
fn has_operand_size_prefix(bytes: &[u8]) -> bool {
    let is_prefix =
        |byte: &&u8| matches!(**byte, 0x26 | 0x2E | 0x36 | 0x3E | 0x40..=0x4F | 0x64..=0x67 | 0xF0 | 0xF2 | 0xF3);
    bytes.iter().take_while(is_prefix).any(|&byte| byte == OPERAND_SIZE_PREFIX)
}

/// Whether a program may contain the instruction.
fn allowed(code: Code) -> bool {
    allowed_mnemonic(code.mnemonic()) && forbidden_form(code).is_none()
}

/// Forbidden forms of otherwise allowed instructions.
fn forbidden_form(code: Code) -> Option<&'static str> {
    Some(match code {
        Code::Mov_r32_cr | Code::Mov_r64_cr | Code::Mov_cr_r32 | Code::Mov_cr_r64 => "mov cr",
        Code::Mov_r32_dr | Code::Mov_r64_dr | Code::Mov_dr_r32 | Code::Mov_dr_r64 => "mov dr",
        Code::Mov_r32_tr | Code::Mov_tr_r32 => "mov tr",
        Code::Mov_rm16_Sreg
        | Code::Mov_r32m16_Sreg
        | Code::Mov_r64m16_Sreg
        | Code::Mov_Sreg_rm16
        | Code::Mov_Sreg_r32m16
        | Code::Mov_Sreg_r64m16 => "mov of a segment register",
        Code::Pushw_FS | Code::Pushq_FS | Code::Pushw_GS | Code::Pushq_GS => "push of a segment register",
        Code::Popw_FS | Code::Popq_FS | Code::Popw_GS | Code::Popq_GS => "pop of a segment register",
        Code::Jmp_m1616 | Code::Jmp_m1632 | Code::Jmp_m1664 | Code::Jmp_ptr1616 | Code::Jmp_ptr1632 => "far jmp",
        Code::Call_m1616 | Code::Call_m1632 | Code::Call_m1664 | Code::Call_ptr1616 | Code::Call_ptr1632 => "far call",
        _ => return None,
    })
}

macro_rules! allowed_mnemonics {
    ($($mnemonic:ident)*) => {
        fn allowed_mnemonic(mnemonic: Mnemonic) -> bool {
            matches!(mnemonic, $(Mnemonic::$mnemonic)|*)
        }
    };
}

allowed_mnemonics! {
    // Baseline integer instructions.
    Adc Add And Bsf Bsr Bswap Bt Btc Btr Bts Call Cbw Cdq Cdqe Clc Cld Cmc Cmova Cmovae Cmovb Cmovbe Cmove Cmovg
    Cmovge Cmovl Cmovle Cmovne Cmovno Cmovnp Cmovns Cmovo Cmovp Cmovs Cmp Cmpsb Cmpsd Cmpsq Cmpsw Cmpxchg
    Cmpxchg8b Cqo Cwd Cwde Dec Div Endbr64 Idiv Imul Inc Int3 Ja Jae Jb Jbe Je Jecxz Jg Jge Jl Jle Jmp Jne Jno
    Jnp Jns Jo Jp Jrcxz Js Lea Leave Lodsb Lodsd Lodsq Lodsw Loop Loope Loopne Mov Movsb Movsd Movsq Movsw Movsx
    Movsxd Movzx Mul Neg Nop Not Or Pause Pop Push Rcl Rcr Ret Rol Ror Sal Sar Sbb Scasb Scasd Scasq Scasw Seta
    Setae Setb Setbe Sete Setg Setge Setl Setle Setne Setno Setnp Setns Seto Setp Sets Shl Shld Shr Shrd Stc
    Stosb Stosd Stosq Stosw Sub Test Ud2 Xadd Xchg Xor
    // SSE and SSE2.
    Addpd Addps Addsd Addss Andnpd Andnps Andpd Andps Cmppd Cmpps Cmpss Comisd Comiss Cvtdq2pd Cvtdq2ps Cvtpd2dq
    Cvtpd2ps Cvtps2dq Cvtps2pd Cvtsd2si Cvtsd2ss Cvtsi2sd Cvtsi2ss Cvtss2sd Cvtss2si Cvttpd2dq Cvttps2dq
    Cvttsd2si Cvttss2si Divpd Divps Divsd Divss Lfence Maskmovdqu Maxpd Maxps Maxsd Maxss Mfence Minpd Minps
    Minsd Minss Movapd Movaps Movd Movdqa Movdqu Movhlps Movhpd Movhps Movlhps Movlpd Movlps Movmskpd Movmskps
    Movntdq Movnti Movntpd Movntps Movq Movss Movupd Movups Mulpd Mulps Mulsd Mulss Orpd Orps Packssdw Packsswb
    Packuswb Paddb Paddd Paddq Paddsb Paddsw Paddusb Paddusw Paddw Pand Pandn Pavgb Pavgw Pcmpeqb Pcmpeqd
    Pcmpeqw Pcmpgtb Pcmpgtd Pcmpgtw Pextrw Pinsrw Pmaddwd Pmaxsw Pmaxub Pminsw Pminub Pmovmskb Pmulhuw Pmulhw
    Pmullw Pmuludq Por Prefetchnta Prefetcht0 Prefetcht1 Prefetcht2 Psadbw Pshufd Pshufhw Pshuflw Pslld Pslldq
    Psllq Psllw Psrad Psraw Psrld Psrldq Psrlq Psrlw Psubb Psubd Psubq Psubsb Psubsw Psubusb Psubusw Psubw
    Punpckhbw Punpckhdq Punpckhqdq Punpckhwd Punpcklbw Punpckldq Punpcklqdq Punpcklwd Pxor Rcpps Rcpss Rsqrtps
    Rsqrtss Sfence Shufpd Shufps Sqrtpd Sqrtps Sqrtsd Sqrtss Subpd Subps Subsd Subss Ucomisd Ucomiss Unpckhpd
    Unpckhps Unpcklpd Unpcklps Xorpd Xorps
    // Of later processors; they have no state beyond the baseline's.
    Adcx Addsubpd Addsubps Adox Aesdec Aesdeclast Aesenc Aesenclast Aesimc Aeskeygenassist Blendpd Blendps
    Blendvpd Blendvps Cmpxchg16b Crc32 Dppd Dpps Extractps Haddpd Haddps Hsubpd Hsubps Insertps Lddqu Lzcnt
    Movbe Movddup Movntdqa Movshdup Movsldup Mpsadbw Pabsb Pabsd Pabsw Packusdw Palignr Pblendvb Pblendw
    Pclmulqdq Pcmpeqq Pcmpestri Pcmpestri64 Pcmpestrm Pcmpestrm64 Pcmpgtq Pcmpistri Pcmpistrm Pextrb Pextrd
    Pextrq Phaddd Phaddsw Phaddw Phminposuw Phsubd Phsubsw Phsubw Pinsrb Pinsrd Pinsrq Pmaddubsw Pmaxsb Pmaxsd
    Pmaxud Pmaxuw Pminsb Pminsd Pminud Pminuw Pmovsxbd Pmovsxbq Pmovsxbw Pmovsxdq Pmovsxwd Pmovsxwq Pmovzxbd
    Pmovzxbq Pmovzxbw Pmovzxdq Pmovzxwd Pmovzxwq Pmuldq Pmulhrsw Pmulld Popcnt Pshufb Psignb Psignd Psignw Ptest
    Roundpd Roundps Roundsd Roundss Sha1msg1 Sha1msg2 Sha1nexte Sha1rnds4 Sha256msg1 Sha256msg2
    Sha256rnds2 Tzcnt
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{CpuidFeature, EncodingKind};

    fn judged(bytes: &[u8]) -> Result<(), ImageError> {
        let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
        judge(&decoder.decode(), bytes, &|_| None)
    }

    #[test]
    fn nops_in_place_of_checks_are_refused_unless_built_for_them() {
        let is_built_for_them = cfg!(feature = "bench-unchecked-images");
        for nop in [&[0x64, 0x90][..], &[0x64, 0x66, 0x90], &[0x64, 0x0f, 0x1f, 0x44, 0, 0]] {
            match judged(nop) {
                Ok(()) => assert!(is_built_for_them, "{nop:02x?}"),
                Err(error) => {
                    assert!(!is_built_for_them && matches!(error, ImageError::SegmentOverride { .. }), "{error}");
                }
            }
        }
        // An access through the segment is refused by every build.
        assert!(matches!(judged(&[0x64, 0x8b, 0x00]), Err(ImageError::SegmentOverride { .. })));
        assert_eq!(judged(&[0x66, 0x90]), Ok(()));
    }

    #[test]
    fn nothing_allowed_is_privileged_or_has_state_the_kernel_does_not_keep() {
        use CpuidFeature::*;
        let kept = [
            INTEL8086,
            INTEL186,
            INTEL286,
            INTEL386,
            INTEL486,
            X64,
            CMOV,
            CX8,
            MULTIBYTENOP,
            PAUSE,
            CET_IBT,
            MMX,
            SSE,
            SSE2,
            SSE3,
            SSSE3,
            SSE4_1,
            SSE4_2,
            POPCNT,
            LZCNT,
            BMI1,
            CMPXCHG16B,
            MOVBE,
            ADX,
            AES,
            PCLMULQDQ,
            SHA,
        ];
        // All instructions that a decoder of 64-bit mode and baseline encodings can return.
        let decoded = |code: &Code| code.op_code().mode64() && code.encoding() == EncodingKind::Legacy;
        for code in Code::values().filter(decoded).filter(|&code| allowed(code)) {
            assert!(!code.is_privileged(), "{code:?}");
            for feature in code.cpuid_features() {
                assert!(kept.contains(feature), "{code:?} needs {feature:?}");
            }
        }
    }
}
