//! Instructions as the proof sees them. What moves addresses about is told exactly; of everything else, which registers
//! and memory it changes. An instruction that is not listed here is refused.

use alloc::vec::Vec;

use iced_x86::{
    CodeSize, ConditionCode, CpuidFeature, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
    InstructionInfoOptions, Mnemonic, OpAccess, OpKind, Register as Name,
};

use crate::convention::{RSP, Register};

/// Bytes of a page: the step in which the stack is touched.
pub const PAGE: i64 = 4096;

/// A memory operand. The address is the sum of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub base: Option<Register>,
    pub index: Option<Register>,
    pub scale: u8,
    pub displacement: i64,
    /// Whether the displacement is an address of the image.
    pub is_image: bool,
    pub bytes: u8,
}

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Register(Register),
    Immediate(i64),
    Memory(Memory),
}

/// Size of an operation's operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Narrow,
    W32,
    W64,
}

/// A condition of unsigned numbers, or of equality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Above,
    AboveOrEqual,
    Below,
    BelowOrEqual,
    Equal,
    NotEqual,
    /// One of which nothing is learnt.
    Other,
}

impl Condition {
    pub fn inverted(self) -> Condition {
        match self {
            Condition::Above => Condition::BelowOrEqual,
            Condition::AboveOrEqual => Condition::Below,
            Condition::Below => Condition::AboveOrEqual,
            Condition::BelowOrEqual => Condition::Above,
            Condition::Equal => Condition::NotEqual,
            Condition::NotEqual => Condition::Equal,
            Condition::Other => Condition::Other,
        }
    }
}

/// Everything else: registers that it changes, a memory access, whether it changes flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Registers of which nothing is known afterwards, a bit for each.
    pub changed: u16,
    /// A register that has at most this number afterwards.
    pub bounded: Option<(Register, u64)>,
    pub memory: Option<Memory>,
    pub reads: bool,
    pub writes: bool,
    pub keeps_flags: bool,
}

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// To a register, of 32 or 64 bits; the upper half of 32 is cleared.
    Move {
        to: Register,
        from: Source,
        width: Width,
    },
    /// To zero, by an instruction that changes flags.
    Clear {
        to: Register,
    },
    /// A load of 32 bits, sign-extended to 64.
    LoadSigned {
        to: Register,
        from: Memory,
    },
    /// To memory.
    Store {
        to: Memory,
        from: Source,
    },
    /// An address to a register.
    Address {
        to: Register,
        of: Memory,
    },
    /// A sum or difference of 64 bits.
    Add {
        to: Register,
        from: Source,
    },
    Subtract {
        to: Register,
        from: Source,
    },
    /// A shift of 64 bits to the left, by 1 to 63.
    Shift {
        to: Register,
        by: u8,
    },
    /// Comparison: flags of the difference.
    Compare {
        left: Source,
        right: Source,
        width: Width,
    },
    /// Flags that tell whether a register is zero.
    IsZero {
        register: Register,
        width: Width,
    },
    /// A move under a condition. 32 bits clear the upper half anyway.
    MoveIf {
        to: Register,
        from: Source,
        condition: Condition,
        width: Width,
    },
    /// Probes a frame page by page, in a loop: the stack pointer is this many bytes lower then, the register too.
    Probe {
        register: Register,
        bytes: i64,
        after: u32,
    },
    Push(Source),
    Pop(Register),
    /// A jump within the function, to the step of this index, or out of it to an address.
    Jump(Target),
    Branch {
        condition: Condition,
        to: Target,
    },
    JumpTo(Register),
    Call(u64),
    CallTo(Source),
    /// Return, which releases this many bytes of arguments.
    Return(i64),
    /// Ends the program.
    Trap,
    Nothing,
    Other(Effects),
}

/// Where a branch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Step(u32),
    Address(u64),
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Its address.
    pub address: u64,
    pub operation: Operation,
}

/// Decodes code up to its end; on failure returns the address of an instruction that is not known.
pub fn decode(bytes: &[u8], address: u64) -> Result<Vec<Step>, u64> {
    let mut steps = Vec::with_capacity(bytes.len() / 4);
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        let start = decoder.position();
        decoder.decode_out(&mut instruction);
        let unknown = instruction.ip();
        if instruction.flow_control() != FlowControl::Next && has_operand_size(bytes.get(start..).unwrap_or_default()) {
            return Err(unknown);
        }
        let operation = operation(&instruction, &mut factory).ok_or(unknown)?;
        steps.push(Step { address: instruction.ip(), operation });
    }
    resolve(&mut steps);
    find_probes(&mut steps);
    Ok(steps)
}

/// Whether an instruction has the prefix of another operand size. Processors disagree on what it does to a branch.
fn has_operand_size(bytes: &[u8]) -> bool {
    let is_prefix =
        |byte: &&u8| matches!(**byte, 0x26 | 0x2E | 0x36 | 0x3E | 0x40..=0x4F | 0x64..=0x67 | 0xF0 | 0xF2 | 0xF3);
    bytes.iter().take_while(is_prefix).any(|byte| *byte == 0x66)
}

/// Finds the step at an address.
pub fn step_at(steps: &[Step], address: u64) -> Option<u32> {
    steps.binary_search_by_key(&address, |step| step.address).ok().map(|index| index as u32)
}

/// Resolves the targets of branches within the function.
fn resolve(steps: &mut [Step]) {
    for index in 0..steps.len() {
        let target = match steps[index].operation {
            Operation::Jump(Target::Address(target)) => target,
            Operation::Branch { to: Target::Address(target), .. } => target,
            _ => continue,
        };
        let Some(found) = step_at(steps, target) else { continue };
        match &mut steps[index].operation {
            Operation::Jump(to) | Operation::Branch { to, .. } => *to = Target::Step(found),
            _ => {}
        }
    }
}

/// Finds loops that touch each page of a frame: a register gets the stack pointer less the size, and then the stack
/// pointer goes there in steps of a page, each of which is written.
fn find_probes(steps: &mut [Step]) {
    let stack = Source::Register(RSP);
    for index in 0..steps.len().saturating_sub(5) {
        let Operation::Move { to: register, from, width: Width::W64 } = steps[index].operation else { continue };
        let Operation::Subtract { to, from: Source::Immediate(bytes) } = steps[index + 1].operation else { continue };
        let Operation::Store { to: touched, from: Source::Immediate(_) } = steps[index + 3].operation else { continue };
        let by_page = Operation::Subtract { to: RSP, from: Source::Immediate(PAGE) };
        let compared = |left, right| Operation::Compare { left, right, width: Width::W64 };
        let end = Source::Register(register);
        let back = Operation::Branch { condition: Condition::NotEqual, to: Target::Step(index as u32 + 2) };
        let is_top = touched.base == Some(RSP) && touched.index.is_none() && touched.displacement == 0;
        let is_loop = from == stack
            && to == register
            && register != RSP
            && bytes > 0
            && bytes % PAGE == 0
            && steps[index + 2].operation == by_page
            && is_top
            && (steps[index + 4].operation == compared(stack, end)
                || steps[index + 4].operation == compared(end, stack))
            && steps[index + 5].operation == back;
        if is_loop {
            steps[index].operation = Operation::Probe { register, bytes, after: index as u32 + 6 };
        }
    }
}

fn operation(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Option<Operation> {
    use Operation::{
        Add, Address, Call, CallTo, Compare, Jump, JumpTo, Move, Nothing, Pop, Push, Return, Subtract, Trap,
    };
    if instruction.is_invalid()
        || instruction.has_lock_prefix()
        || instruction.has_rep_prefix() && instruction.mnemonic() != Mnemonic::Pause
        || instruction.code_size() != CodeSize::Code64
    {
        return None;
    }
    let operands = (instruction.op0_kind(), instruction.op1_kind());
    let width = width(instruction);
    Some(match instruction.mnemonic() {
        Mnemonic::Mov => match (operands, width) {
            ((OpKind::Memory, _), _) => Operation::Store { to: memory(instruction)?, from: source(instruction, 1)? },
            (_, Width::Narrow) => return other(instruction, factory),
            _ => Move { to: register(instruction, 0)?, from: source(instruction, 1)?, width },
        },
        Mnemonic::Movsxd if operands.1 == OpKind::Memory && width == Width::W64 => {
            Operation::LoadSigned { to: register(instruction, 0)?, from: memory(instruction)? }
        }
        Mnemonic::Xor if width != Width::Narrow && is_same_register(instruction) => {
            Operation::Clear { to: register(instruction, 0)? }
        }
        Mnemonic::Lea if width == Width::W64 => Address { to: register(instruction, 0)?, of: memory(instruction)? },
        Mnemonic::Add if width == Width::W64 && operands.0 == OpKind::Register => {
            Add { to: register(instruction, 0)?, from: source(instruction, 1)? }
        }
        Mnemonic::Sub if width == Width::W64 && operands.0 == OpKind::Register => {
            Subtract { to: register(instruction, 0)?, from: source(instruction, 1)? }
        }
        Mnemonic::Shl
            if width == Width::W64
                && operands == (OpKind::Register, OpKind::Immediate8)
                && (1..=63).contains(&instruction.immediate8()) =>
        {
            Operation::Shift { to: register(instruction, 0)?, by: instruction.immediate8() }
        }
        Mnemonic::Cmp => Compare { left: source(instruction, 0)?, right: source(instruction, 1)?, width },
        Mnemonic::Test if is_same_register(instruction) => {
            Operation::IsZero { register: register(instruction, 0)?, width }
        }
        Mnemonic::Push => Push(source(instruction, 0).filter(|_| instruction.stack_pointer_increment() == -8)?),
        Mnemonic::Pop if operands.0 == OpKind::Register && instruction.stack_pointer_increment() == 8 => {
            Pop(register(instruction, 0)?)
        }
        Mnemonic::Jmp => match operands.0 {
            OpKind::NearBranch64 => Jump(Target::Address(instruction.near_branch64())),
            OpKind::Register if width == Width::W64 => JumpTo(register(instruction, 0)?),
            _ => return None,
        },
        Mnemonic::Call => match operands.0 {
            OpKind::NearBranch64 => Call(instruction.near_branch64()),
            OpKind::Register | OpKind::Memory if width == Width::W64 => CallTo(source(instruction, 0)?),
            _ => return None,
        },
        Mnemonic::Ret => match operands.0 {
            _ if instruction.stack_pointer_increment() < 8 => return None,
            OpKind::Immediate16 => Return(i64::from(instruction.immediate16())),
            _ => Return(0),
        },
        Mnemonic::Ud2 | Mnemonic::Int3 => Trap,
        Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Pause => Nothing,
        _ if instruction.is_jcc_short_or_near() => Operation::Branch {
            condition: condition(instruction.condition_code()),
            to: Target::Address(instruction.near_branch64()),
        },
        _ if is_cmov(instruction) && width != Width::Narrow => Operation::MoveIf {
            to: register(instruction, 0)?,
            from: source(instruction, 1)?,
            condition: condition(instruction.condition_code()),
            width,
        },
        _ => return other(instruction, factory),
    })
}

fn is_cmov(instruction: &Instruction) -> bool {
    instruction.condition_code() != ConditionCode::None && instruction.op_count() == 2
}

fn is_same_register(instruction: &Instruction) -> bool {
    (instruction.op0_kind(), instruction.op1_kind()) == (OpKind::Register, OpKind::Register)
        && instruction.op0_register() == instruction.op1_register()
}

fn condition(code: ConditionCode) -> Condition {
    match code {
        ConditionCode::a => Condition::Above,
        ConditionCode::ae => Condition::AboveOrEqual,
        ConditionCode::b => Condition::Below,
        ConditionCode::be => Condition::BelowOrEqual,
        ConditionCode::e => Condition::Equal,
        ConditionCode::ne => Condition::NotEqual,
        _ => Condition::Other,
    }
}

/// The width of the first operand.
fn width(instruction: &Instruction) -> Width {
    let bytes = match instruction.op0_kind() {
        OpKind::Register => instruction.op0_register().size(),
        OpKind::Memory => instruction.memory_size().size(),
        _ => 0,
    };
    match bytes {
        4 => Width::W32,
        8 => Width::W64,
        _ => Width::Narrow,
    }
}

fn number(name: Name) -> Option<Register> {
    name.is_gpr().then(|| name.full_register().number() as Register)
}

/// The register that is an operand. High bytes are part of their register: nothing exact is told of either.
fn register(instruction: &Instruction, operand: u32) -> Option<Register> {
    number(instruction.op_register(operand))
}

fn source(instruction: &Instruction, operand: u32) -> Option<Source> {
    Some(match instruction.op_kind(operand) {
        OpKind::Register => Source::Register(number(instruction.op_register(operand))?),
        OpKind::Memory => Source::Memory(memory(instruction)?),
        _ => Source::Immediate(instruction.try_immediate(operand).ok()? as i64),
    })
}

fn memory(instruction: &Instruction) -> Option<Memory> {
    if instruction.segment_prefix() != Name::None {
        return None;
    }
    let bytes = u8::try_from(instruction.memory_size().size()).ok()?;
    if instruction.is_ip_rel_memory_operand() {
        let displacement = instruction.ip_rel_memory_address() as i64;
        return (instruction.memory_base() == Name::RIP).then_some(Memory {
            base: None,
            index: None,
            scale: 1,
            displacement,
            is_image: true,
            bytes,
        });
    }
    let part = |name: Name| match name {
        Name::None => Some(None),
        name if name.is_gpr64() => Some(number(name)),
        _ => None,
    };
    Some(Memory {
        base: part(instruction.memory_base())?,
        index: part(instruction.memory_index())?,
        scale: instruction.memory_index_scale() as u8,
        displacement: instruction.memory_displacement64() as i64,
        is_image: false,
        bytes,
    })
}

/// Instructions on integers of which only the registers and memory matter that they change.
fn is_plain(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{
        Adc, Add, And, Bsf, Bsr, Bswap, Bt, Btc, Btr, Bts, Cbw, Cdq, Cdqe, Cqo, Cwd, Cwde, Dec, Div, Idiv, Imul, Inc,
        Lea, Mov, Movsx, Movsxd, Movzx, Mul, Neg, Not, Or, Popcnt, Rol, Ror, Sar, Sbb, Shl, Shld, Shr, Shrd, Sub, Test,
        Xchg, Xor,
    };
    matches!(
        mnemonic,
        Adc | Add
            | And
            | Bsf
            | Bsr
            | Bswap
            | Cbw
            | Cdq
            | Cdqe
            | Cqo
            | Cwd
            | Cwde
            | Dec
            | Div
            | Idiv
            | Imul
            | Inc
            | Lea
            | Mov
            | Movsx
            | Movsxd
            | Movzx
            | Mul
            | Neg
            | Not
            | Or
            | Popcnt
            | Rol
            | Ror
            | Sar
            | Sbb
            | Shl
            | Shld
            | Shr
            | Shrd
            | Sub
            | Test
            | Xor
    ) || matches!(mnemonic, Bt | Btc | Btr | Bts | Xchg)
}

/// Instructions on vectors and floats, apart from those that use memory or state without an operand for it.
fn is_vector(instruction: &Instruction) -> bool {
    use CpuidFeature::{SSE, SSE2, SSE3, SSE4_1, SSE4_2, SSSE3};
    let is_known = |feature: &CpuidFeature| matches!(feature, SSE | SSE2 | SSE3 | SSSE3 | SSE4_1 | SSE4_2);
    let without_operand = matches!(
        instruction.mnemonic(),
        Mnemonic::Maskmovdqu | Mnemonic::Maskmovq | Mnemonic::Ldmxcsr | Mnemonic::Stmxcsr | Mnemonic::Clflush
    );
    instruction.cpuid_features().iter().all(is_known) && !without_operand
}

fn other(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Option<Operation> {
    let mnemonic = instruction.mnemonic();
    let is_set = instruction.condition_code() != ConditionCode::None;
    let has_memory = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    // Segment, control and other registers have effects of their own.
    let is_strange = |operand: u32| {
        let name = instruction.op_register(operand);
        instruction.op_kind(operand) == OpKind::Register && !name.is_gpr() && !name.is_xmm()
    };
    // A bit string in memory reaches beyond its operand; an exchange with memory is locked.
    let reaches_far =
        has_memory && matches!(mnemonic, Mnemonic::Bt | Mnemonic::Btc | Mnemonic::Btr | Mnemonic::Bts | Mnemonic::Xchg);
    if (0..instruction.op_count()).any(is_strange)
        || reaches_far
        || !(is_plain(mnemonic) || is_set || is_vector(instruction))
        || instruction.flow_control() != FlowControl::Next
        || instruction.is_stack_instruction()
    {
        return None;
    }
    let info = factory.info_options(instruction, InstructionInfoOptions::NONE);
    let mut effects = Effects { keeps_flags: instruction.rflags_modified() == 0, ..Effects::default() };
    for used in info.used_registers() {
        let writes =
            !matches!(used.access(), OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess);
        match number(used.register()) {
            Some(RSP) if writes => return None,
            Some(register) if writes => effects.changed |= 1 << register,
            _ => {}
        }
    }
    match (info.used_memory(), has_memory || mnemonic == Mnemonic::Lea) {
        ([], false) => {}
        ([], true) if mnemonic == Mnemonic::Lea => {}
        ([used], true) => {
            effects.memory = Some(memory(instruction)?);
            let access = used.access();
            effects.reads = !matches!(access, OpAccess::Write | OpAccess::CondWrite);
            effects.writes = !matches!(access, OpAccess::Read | OpAccess::CondRead);
        }
        _ => return None,
    }
    effects.bounded = bounded(instruction).filter(|(register, _)| effects.changed >> register & 1 != 0);
    if let Some((register, _)) = effects.bounded {
        effects.changed &= !(1 << register);
    }
    Some(Operation::Other(effects))
}

/// What the result of an instruction with 32 bits is at most: its upper half is zero. Where the source of a bit scan is
/// zero, its result is not written at all.
fn bounded(instruction: &Instruction) -> Option<(Register, u64)> {
    let mnemonic = instruction.mnemonic();
    if instruction.op0_kind() != OpKind::Register || matches!(mnemonic, Mnemonic::Bsf | Mnemonic::Bsr) {
        return None;
    }
    let name = instruction.op0_register();
    let is_wide = name.is_gpr64() && matches!(mnemonic, Mnemonic::Movzx | Mnemonic::And);
    if !name.is_gpr32() && !is_wide {
        return None;
    }
    let all = if is_wide { u64::MAX } else { u64::from(u32::MAX) };
    let last = instruction.op_count() - 1;
    let immediate = (last == 1).then(|| instruction.try_immediate(1).ok()).flatten();
    let most = match (mnemonic, immediate) {
        (Mnemonic::Movzx, _) => match operand_bytes(instruction, 1) {
            1 => 0xff,
            _ => 0xffff,
        },
        (Mnemonic::And, Some(mask)) => mask & all,
        (Mnemonic::Shr, Some(by)) => all >> (by & 31),
        _ => all,
    };
    Some((number(name)?, most))
}

fn operand_bytes(instruction: &Instruction, operand: u32) -> usize {
    match instruction.op_kind(operand) {
        OpKind::Memory => instruction.memory_size().size(),
        _ => instruction.op_register(operand).size(),
    }
}
