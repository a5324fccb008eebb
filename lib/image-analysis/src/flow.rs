//! Follows the control flow of one function, and what is known of the stack pointer and of registers.
//!
//! Both only lose knowledge where ways meet, so the search ends. A frame that grows in a loop, which compiled code has
//! not, ends it too, as one whose size depends on the run.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use crate::calls::{Call, Target};
use crate::program::Code;
use crate::tags::{Numbers, SLOT_MASK, State, TABLE, Tag, is_whole, kernel_function};

/// Times that the state at one place may change. Registers and slots can become unknown once each.
const CHANGES_MAX: u32 = 200;

/// What the code of a function tells.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) calls: Vec<Call>,
    pub(crate) stack: Option<u32>,
    pub(crate) returns: bool,
    pub(crate) float: Option<u64>,
    pub(crate) traps: Option<u64>,
    pub(crate) taken: Vec<usize>,
    pub(crate) mentioned: BTreeSet<u64>,
}

/// Reads a function; `returns` tells which functions do.
pub(crate) fn read(code: &Code<'_>, function: usize, returns: &dyn Fn(usize) -> bool) -> Found {
    let Some(&(start, end)) = code.ranges.get(function) else { return Found::default() };
    let Some(bytes) = code.bytes(start, end) else { return Found::default() };
    let decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let instructions: Vec<Instruction> = decoder.into_iter().collect();
    let mut flow = Flow {
        code,
        returns,
        range: (start, end),
        instructions,
        states: BTreeMap::new(),
        open: Vec::new(),
        calls: BTreeMap::new(),
        deepest: Some(0),
        stray: None,
        compared: None,
        found: Found::default(),
    };
    flow.leaders();
    flow.enter(start, &State::entry());
    flow.run();
    let mut found = flow.found;
    found.calls = flow.calls.into_values().collect();
    found.stack = flow.deepest.and_then(|deepest| u32::try_from(deepest).ok());
    found.taken.sort_unstable();
    found.taken.dedup();
    found
}

struct Flow<'c, 'a> {
    code: &'c Code<'a>,
    returns: &'c dyn Fn(usize) -> bool,
    range: (u64, u64),
    instructions: Vec<Instruction>,
    /// By address of a block's first instruction: its state, once a way to it was found, and how often it changed.
    states: BTreeMap<u64, (Option<State>, u32)>,
    open: Vec<u64>,
    calls: BTreeMap<u64, Call>,
    deepest: Option<i64>,
    /// Joined state of jumps whose targets are not known.
    stray: Option<State>,
    /// A value of the stack pointer that was just compared with it: the end of a loop that touches each page.
    compared: Option<i64>,
    found: Found,
}

/// What follows an instruction.
enum Next {
    Following,
    End,
}

impl Flow<'_, '_> {
    /// Finds where blocks begin.
    fn leaders(&mut self) {
        let mut starts = BTreeSet::from([self.range.0]);
        for instruction in &self.instructions {
            if instruction.op0_kind() == OpKind::NearBranch64 {
                starts.insert(instruction.near_branch64());
                starts.insert(instruction.next_ip());
            } else if ends_block(instruction) {
                starts.insert(instruction.next_ip());
            }
        }
        let (start, end) = self.range;
        self.states = starts.into_iter().filter(|at| (start..end).contains(at)).map(|at| (at, (None, 0))).collect();
    }

    fn is_inside(&self, address: u64) -> bool {
        (self.range.0..self.range.1).contains(&address)
    }

    /// Joins a state into that of a block. One that is not yet known as a block becomes one.
    fn enter(&mut self, address: u64, state: &State) {
        let (known, changes) = self.states.entry(address).or_insert((None, 0));
        let changed = match known {
            None => {
                *known = Some(state.clone());
                true
            }
            Some(known) => {
                let changed = known.join(state);
                if changed && *changes > CHANGES_MAX {
                    known.depth = None;
                }
                changed && *changes <= CHANGES_MAX + 1
            }
        };
        if changed {
            *changes += 1;
            self.open.push(address);
        }
    }

    fn run(&mut self) {
        loop {
            while let Some(block) = self.open.pop() {
                self.block(block);
            }
            // Code that only a jump with unknown targets can reach.
            let Some(stray) = self.stray.clone() else { return };
            let unseen: Vec<u64> =
                self.states.iter().filter(|(_, (state, _))| state.is_none()).map(|(at, _)| *at).collect();
            if unseen.is_empty() {
                return;
            }
            unseen.into_iter().for_each(|at| self.enter(at, &stray));
        }
    }

    fn block(&mut self, start: u64) {
        let Some((Some(state), _)) = self.states.get(&start) else { return };
        let mut state = state.clone();
        let Ok(mut index) = self.instructions.binary_search_by_key(&start, Instruction::ip) else { return };
        self.compared = None;
        while let Some(instruction) = self.instructions.get(index).copied() {
            if instruction.ip() != start && self.states.contains_key(&instruction.ip()) {
                self.enter(instruction.ip(), &state);
                return;
            }
            if let Next::End = self.step(&instruction, &mut state) {
                return;
            }
            index += 1;
        }
        // Code that runs on into the next function: a symbol that is too short.
        self.leave(self.range.1, self.range.1, &state);
    }

    /// Notes the use of the stack.
    fn touch(&mut self, depth: Option<i64>) {
        self.deepest = match (self.deepest, depth) {
            (Some(deepest), Some(depth)) => Some(deepest.max(depth)),
            _ => None,
        };
    }

    fn step(&mut self, instruction: &Instruction, state: &mut State) -> Next {
        if is_float(instruction.mnemonic()) {
            self.found.float = Some(self.found.float.map_or(instruction.ip(), |first| first.min(instruction.ip())));
        }
        // Data below the stack pointer, in functions that call nothing.
        if instruction.memory_base() == Register::RSP && (instruction.memory_displacement64() as i64) < 0 {
            let below = (instruction.memory_displacement64() as i64).checked_neg();
            self.touch(state.depth.zip(below).map(|(depth, below)| depth + below));
        }
        match instruction.mnemonic() {
            Mnemonic::Ret => {
                self.found.returns = true;
                return Next::End;
            }
            Mnemonic::Ud2 | Mnemonic::Int3 => {
                self.found.traps = Some(self.found.traps.map_or(instruction.ip(), |first| first.min(instruction.ip())));
                return Next::End;
            }
            Mnemonic::Call => return self.call(instruction, state),
            Mnemonic::Jmp => {
                self.jump(instruction, state);
                return Next::End;
            }
            _ if instruction.op0_kind() == OpKind::NearBranch64 => {
                self.branch(instruction, state);
                return Next::Following;
            }
            _ => {}
        }
        self.transfer(instruction, state);
        self.touch(state.depth);
        Next::Following
    }

    fn branch(&mut self, instruction: &Instruction, state: &mut State) {
        let target = instruction.near_branch64();
        // The loop goes on until the stack pointer has the value that it was compared with.
        if let Some(end) = self.compared.take().filter(|_| target <= instruction.ip()) {
            state.depth = Some(end);
            self.touch(state.depth);
            return;
        }
        self.leave(instruction.ip(), target, state);
    }

    /// A jump to a known address: in the function, or to another one, which returns in its place.
    fn leave(&mut self, at: u64, target: u64, state: &State) {
        if self.is_inside(target) {
            self.enter(target, state);
            return;
        }
        self.tail(at, self.code.function_at(target).map_or(Target::Pointer, Target::Function), state);
    }

    fn tail(&mut self, at: u64, target: Target, state: &State) {
        let depth = state.depth.and_then(|depth| u32::try_from(depth).ok()).unwrap_or(0);
        self.touch(state.depth);
        let second = second_argument(state);
        self.calls.insert(at, Call { at, target, depth, second });
        self.found.returns |= self.may_return(target);
    }

    fn may_return(&self, target: Target) -> bool {
        match target {
            Target::Function(function) => (self.returns)(function),
            Target::Kernel(function) => abi::FUNCTIONS.get(function).is_none_or(|one| one.value != "does not return"),
            Target::Method(_) | Target::Pointer => true,
        }
    }

    fn call(&mut self, instruction: &Instruction, state: &mut State) -> Next {
        let target = self.target(instruction, state);
        let depth = state.depth.map(|depth| depth + 8);
        self.touch(depth);
        let depth = depth.and_then(|depth| u32::try_from(depth).ok()).unwrap_or(0);
        let (at, second) = (instruction.ip(), second_argument(state));
        self.calls.insert(at, Call { at, target, depth, second });
        state.after_call();
        if self.may_return(target) { Next::Following } else { Next::End }
    }

    fn jump(&mut self, instruction: &Instruction, state: &State) {
        if instruction.op0_kind() == OpKind::NearBranch64 {
            self.leave(instruction.ip(), instruction.near_branch64(), state);
            return;
        }
        if instruction.op0_kind() == OpKind::Register {
            match state.get(instruction.op0_register()) {
                Tag::Case(table) => {
                    self.switch(table, state);
                    return;
                }
                // Before the frame is gone, no other function is called so.
                Tag::Unknown if state.depth != Some(0) => {
                    match &mut self.stray {
                        Some(stray) => drop(stray.join(state)),
                        None => self.stray = Some(state.clone()),
                    }
                    return;
                }
                _ => {}
            }
        }
        let target = self.target(instruction, state);
        self.tail(instruction.ip(), target, state);
    }

    /// Follows the entries of a table of distances from its own address. It ends where one leads out of the function.
    fn switch(&mut self, table: u64, state: &State) {
        let mut at = table;
        while let Some(distance) =
            self.code.data(at).and_then(|data| data.first_chunk()).map(|word| i32::from_le_bytes(*word))
        {
            let target = table.wrapping_add_signed(distance.into());
            if !self.is_inside(target) || self.instructions.binary_search_by_key(&target, Instruction::ip).is_err() {
                return;
            }
            self.enter(target, state);
            at += 4;
        }
    }

    /// What a call or jump through a register or a word of memory leads to, or a direct call.
    fn target(&self, instruction: &Instruction, state: &State) -> Target {
        let function = |address| self.code.function_at(address).map_or(Target::Pointer, Target::Function);
        let of_tag = |tag| match tag {
            Tag::Kernel(index) => Target::Kernel(index),
            Tag::Address(address) => function(address),
            Tag::Word(distance) => Target::Method(distance),
            _ => Target::Pointer,
        };
        match instruction.op0_kind() {
            OpKind::NearBranch64 => function(instruction.near_branch64()),
            OpKind::Register => of_tag(state.get(instruction.op0_register())),
            OpKind::Memory => of_tag(self.load(instruction, state)),
            _ => Target::Pointer,
        }
    }

    /// What is known of the word that the instruction reads.
    fn load(&self, instruction: &Instruction, state: &State) -> Tag {
        let distance = instruction.memory_displacement64() as i64;
        if instruction.is_ip_rel_memory_operand() {
            let relocated = self.code.relocated(instruction.ip_rel_memory_address());
            return relocated
                .and_then(|function| self.code.ranges.get(function))
                .map_or(Tag::Unknown, |range| Tag::Address(range.0));
        }
        if instruction.memory_index() != Register::None || instruction.memory_base() == Register::None {
            return Tag::Unknown;
        }
        match state.get(instruction.memory_base()) {
            Tag::Top(above) if above.wrapping_add(distance) == TABLE => Tag::Table,
            Tag::Table => kernel_function(distance).map_or(Tag::Unknown, Tag::Kernel),
            Tag::Stack(below) => state.slot(below - distance),
            Tag::Top(_) => Tag::Unknown,
            _ => Tag::Word(distance),
        }
    }

    /// The effect of an instruction that does not branch.
    fn transfer(&mut self, instruction: &Instruction, state: &mut State) {
        let to = instruction.op0_register();
        let is_register = instruction.op0_kind() == OpKind::Register;
        let compared = self.compared.take();
        match instruction.mnemonic() {
            Mnemonic::Push => {
                // A frame pointer, too: the function pops it before it returns.
                let tag = if is_register { state.get(to) } else { Tag::Unknown };
                let tag = if matches!(tag, Tag::Stack(_)) { tag } else { kept(tag) };
                state.depth = state.depth.map(|depth| depth + 8);
                state.depth.into_iter().for_each(|depth| state.set_slot(depth, tag));
            }
            Mnemonic::Pop => {
                let tag = state.depth.map_or(Tag::Unknown, |depth| state.slot(depth));
                state.depth = state.depth.map(|depth| depth - 8);
                if is_register {
                    state.set(to, tag);
                }
            }
            Mnemonic::Leave => {
                state.depth = match state.get(Register::RBP) {
                    Tag::Stack(below) => Some(below - 8),
                    _ => None,
                };
                state.set(Register::RBP, Tag::Unknown);
            }
            Mnemonic::Cmp => {
                let pair = (state.get(to), state.get(instruction.op1_register()));
                let both = is_register && instruction.op1_kind() == OpKind::Register;
                self.compared = match pair {
                    (Tag::Stack(_), Tag::Stack(end)) if both && to == Register::RSP => Some(end),
                    _ => None,
                };
            }
            Mnemonic::Test | Mnemonic::Bt | Mnemonic::Nop => self.compared = compared,
            _ if is_register && to == Register::RSP => state.depth = stack_pointer(instruction, state),
            _ if is_register => {
                let tag = self.value(instruction, state);
                state.set(to, tag);
                implicit(instruction.mnemonic(), state);
            }
            _ => {
                self.store(instruction, state);
                implicit(instruction.mnemonic(), state);
            }
        }
    }

    /// The value that an instruction leaves in its first register.
    fn value(&mut self, instruction: &Instruction, state: &State) -> Tag {
        let from = instruction.op1_register();
        let (old, is_wide) = (state.get(instruction.op0_register()), is_whole(instruction.op0_register()));
        match (instruction.mnemonic(), instruction.op1_kind()) {
            (Mnemonic::Mov, OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate32to64) => {
                Tag::Numbers(Numbers::one(instruction.immediate(1)))
            }
            (Mnemonic::Xor, OpKind::Register) if instruction.op0_register() == from => Tag::Numbers(Numbers::one(0)),
            (Mnemonic::Mov, OpKind::Register) if is_wide => state.get(from),
            (mnemonic, OpKind::Register) if is_choice(mnemonic) => old.or(state.get(from)),
            (Mnemonic::Mov, OpKind::Memory) if is_wide => self.load(instruction, state),
            (Mnemonic::Lea, OpKind::Memory) if is_wide => self.address(instruction, state),
            (Mnemonic::Or, OpKind::Immediate32to64 | OpKind::Immediate8to64) => match old {
                Tag::Stack(_) if instruction.immediate(1) == SLOT_MASK => Tag::Top(0),
                Tag::Numbers(numbers) => {
                    numbers.map(|number| number | instruction.immediate(1)).map_or(Tag::Unknown, Tag::Numbers)
                }
                _ => Tag::Unknown,
            },
            (Mnemonic::Add, OpKind::Immediate32to64 | OpKind::Immediate8to64) => match old {
                Tag::Stack(below) => Tag::Stack(below.wrapping_sub(instruction.immediate(1) as i64)),
                Tag::Top(above) => Tag::Top(above.wrapping_add(instruction.immediate(1) as i64)),
                _ => Tag::Unknown,
            },
            (Mnemonic::Sub, OpKind::Immediate32to64 | OpKind::Immediate8to64) => match old {
                Tag::Stack(below) => Tag::Stack(below.wrapping_add(instruction.immediate(1) as i64)),
                Tag::Top(above) => Tag::Top(above.wrapping_sub(instruction.immediate(1) as i64)),
                _ => Tag::Unknown,
            },
            (Mnemonic::Movsxd, OpKind::Memory) if instruction.memory_index_scale() == 4 => {
                match state.get(instruction.memory_base()) {
                    Tag::Address(table) if instruction.memory_displacement64() == 0 => Tag::Case(table),
                    _ => Tag::Unknown,
                }
            }
            (Mnemonic::Add, OpKind::Register) => match (old, state.get(from)) {
                (Tag::Case(table), Tag::Address(base)) | (Tag::Address(base), Tag::Case(table)) if base == table => {
                    Tag::Case(table)
                }
                _ => Tag::Unknown,
            },
            _ => Tag::Unknown,
        }
    }

    fn address(&mut self, instruction: &Instruction, state: &State) -> Tag {
        if instruction.is_ip_rel_memory_operand() {
            let address = instruction.ip_rel_memory_address();
            match self.code.function_at(address) {
                Some(function) => self.found.taken.push(function),
                None if self.code.is_code(address) => {}
                None => drop(self.found.mentioned.insert(address)),
            }
            return Tag::Address(address);
        }
        let distance = instruction.memory_displacement64() as i64;
        match state.get(instruction.memory_base()) {
            Tag::Stack(below) if instruction.memory_index() == Register::None => Tag::Stack(below - distance),
            Tag::Top(above) if instruction.memory_index() == Register::None => Tag::Top(above.wrapping_add(distance)),
            _ => Tag::Unknown,
        }
    }

    /// Follows what the compiler itself keeps on the stack.
    fn store(&self, instruction: &Instruction, state: &mut State) {
        if instruction.op0_kind() != OpKind::Memory || instruction.memory_index() != Register::None {
            return;
        }
        let Tag::Stack(below) = state.get(instruction.memory_base()) else { return };
        let below = below - instruction.memory_displacement64() as i64;
        let stores_register = instruction.mnemonic() == Mnemonic::Mov
            && instruction.op1_kind() == OpKind::Register
            && is_whole(instruction.op1_register());
        let is_vector = instruction.op1_kind() == OpKind::Register
            && (Register::XMM0..=Register::XMM15).contains(&instruction.op1_register());
        let bytes = if is_vector { 16 } else { 8 };
        (below - bytes + 1..below + 8).filter(|at| *at != below).for_each(|at| forget(state, at));
        state.set_slot(below, if stores_register { kept(state.get(instruction.op1_register())) } else { Tag::Unknown });
    }
}

fn second_argument(state: &State) -> Option<Numbers> {
    match state.get(Register::RSI) {
        Tag::Numbers(numbers) => Some(numbers),
        _ => None,
    }
}

fn forget(state: &mut State, below: i64) {
    if state.slot(below) != Tag::Unknown {
        state.set_slot(below, Tag::Unknown);
    }
}

/// Values that no code of a program changes through a pointer to the stack slot.
fn kept(tag: Tag) -> Tag {
    match tag {
        Tag::Top(_) | Tag::Table => tag,
        _ => Tag::Unknown,
    }
}

/// The depth of the stack after an instruction that changes its pointer.
fn stack_pointer(instruction: &Instruction, state: &State) -> Option<i64> {
    let is_number = matches!(instruction.op1_kind(), OpKind::Immediate8to64 | OpKind::Immediate32to64);
    let number = if is_number { instruction.immediate(1) as i64 } else { 0 };
    match (instruction.mnemonic(), instruction.op1_kind()) {
        (Mnemonic::Sub, _) if is_number => Some(state.depth? + number),
        (Mnemonic::Add, _) if is_number => Some(state.depth? - number),
        // At an alignment, the frame grows by less than that.
        (Mnemonic::And, _) if is_number && number < 0 && number.unsigned_abs().is_power_of_two() => {
            Some(state.depth? - number - 8)
        }
        (Mnemonic::Lea, OpKind::Memory) if instruction.memory_index() == Register::None => {
            match state.get(instruction.memory_base()) {
                Tag::Stack(below) => Some(below - instruction.memory_displacement64() as i64),
                _ => None,
            }
        }
        (Mnemonic::Mov, OpKind::Register) => match state.get(instruction.op1_register()) {
            Tag::Stack(below) => Some(below),
            _ => None,
        },
        _ => None,
    }
}

/// Registers that an instruction changes beside its first operand.
fn implicit(mnemonic: Mnemonic, state: &mut State) {
    use Mnemonic::*;
    let changed: &[Register] = match mnemonic {
        Mul | Imul | Div | Idiv | Cqo | Cdq | Cwd | Cbw | Cwde | Cdqe => &[Register::RAX, Register::RDX],
        Cmpxchg | Cmpxchg8b | Cmpxchg16b => &[Register::RAX, Register::RDX],
        Movsb | Movsw | Movsd | Movsq | Cmpsb | Cmpsw | Cmpsd | Cmpsq | Stosb | Stosw | Stosd | Stosq | Lodsb
        | Lodsw | Lodsd | Lodsq | Scasb | Scasw | Scasd | Scasq => {
            &[Register::RAX, Register::RCX, Register::RSI, Register::RDI]
        }
        // Their second operand; few enough to forget everything.
        Xchg | Xadd => {
            state.after_call();
            &[Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15]
        }
        _ => &[],
    };
    changed.iter().for_each(|register| state.set(*register, Tag::Unknown));
}

/// Moves under a condition.
fn is_choice(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Cmova
            | Cmovae
            | Cmovb
            | Cmovbe
            | Cmove
            | Cmovg
            | Cmovge
            | Cmovl
            | Cmovle
            | Cmovne
            | Cmovno
            | Cmovnp
            | Cmovns
            | Cmovo
            | Cmovp
            | Cmovs
    )
}

fn ends_block(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Ret | Mnemonic::Ud2 | Mnemonic::Int3 | Mnemonic::Jmp)
}

/// Floating-point arithmetic and conversions; not the moves and bit operations that also copy other data.
fn is_float(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Addpd
            | Addps
            | Addsd
            | Addss
            | Addsubpd
            | Addsubps
            | Cmppd
            | Cmpps
            | Cmpss
            | Comisd
            | Comiss
            | Cvtdq2pd
            | Cvtdq2ps
            | Cvtpd2dq
            | Cvtpd2ps
            | Cvtps2dq
            | Cvtps2pd
            | Cvtsd2si
            | Cvtsd2ss
            | Cvtsi2sd
            | Cvtsi2ss
            | Cvtss2sd
            | Cvtss2si
            | Cvttpd2dq
            | Cvttps2dq
            | Cvttsd2si
            | Cvttss2si
            | Divpd
            | Divps
            | Divsd
            | Divss
            | Dppd
            | Dpps
            | Haddpd
            | Haddps
            | Hsubpd
            | Hsubps
            | Maxpd
            | Maxps
            | Maxsd
            | Maxss
            | Minpd
            | Minps
            | Minsd
            | Minss
            | Mulpd
            | Mulps
            | Mulsd
            | Mulss
            | Rcpps
            | Rcpss
            | Roundpd
            | Roundps
            | Roundsd
            | Roundss
            | Rsqrtps
            | Rsqrtss
            | Sqrtpd
            | Sqrtps
            | Sqrtsd
            | Sqrtss
            | Subpd
            | Subps
            | Subsd
            | Subss
            | Ucomisd
            | Ucomiss
    )
}
