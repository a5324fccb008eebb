//! An emulator that runs a function with arguments made up, and watches where it goes: any access, call, jump or return
//! that leaves what the function was given is an escape. What it does not know is given results made up.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use compose::Linked;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use wasm_record::layout::{ARGUMENTS, Bounds, HEADER_BOUNDS, TABLES, WINDOW_BYTES, global};
use wasm_record::{Record, Signature, ValueType};

use super::{BUILTIN, HOST};

const CONTEXT: u64 = 0x7000_0000_0000;
const TABLE: u64 = 0x6800_0000_0000;
const RESULTS: u64 = 0x7f00_0000_0000;
const STACK: u64 = 0x7fff_0000_0008;
const RETURN: u64 = 0x1234_5678_9abc;
const STEPS: usize = 400;
const PRESERVED: [usize; 6] = [3, 5, 12, 13, 14, 15];

/// Numbers made up: xorshift.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// A number as programs have them: often small, or near a limit.
    fn number(&mut self) -> u64 {
        let number = self.next();
        match number % 7 {
            0 => number >> 8 & 0xff,
            1 => number >> 8 & 0xffff,
            2 => 0xffff_ffff - (number >> 8 & 0xff),
            3 => 0xff00 + (number >> 8 & 0x1ff),
            4 => number >> 8 & 7,
            5 => u64::MAX - (number >> 8 & 0xff),
            _ => number,
        }
    }
}

/// Bytes of the stack's arguments, and those of the area for results.
fn convention(signature: &Signature) -> (u64, u64) {
    let spilled = |types: &[ValueType], mut integers: usize, most: usize| {
        let (mut floats, mut bytes) = (0, 0u64);
        for kind in types {
            let is_float = matches!(kind, ValueType::F32 | ValueType::F64 | ValueType::V128);
            let (used, most) = if is_float { (&mut floats, 8) } else { (&mut integers, most) };
            *used += 1;
            if *used > most {
                let size = if *kind == ValueType::V128 { 16 } else { 8 };
                bytes = bytes.next_multiple_of(size) + size;
            }
        }
        bytes.next_multiple_of(16)
    };
    let results = spilled(&signature.results, 0, 8);
    (spilled(&signature.parameters, 1 + usize::from(results > 0), 6), results)
}

/// A laid out module whose functions are run.
pub struct Program<'a> {
    linked: &'a Linked,
    record: Record<'a>,
    starts: BTreeMap<u64, usize>,
}

/// A run of a function.
struct Run<'a> {
    program: &'a Program<'a>,
    random: &'a mut Random,
    registers: [u64; 16],
    initial: [u64; 16],
    bytes: HashMap<u64, u8>,
    carry: bool,
    zero: bool,
    sign: bool,
    overflow: bool,
    memory: (u64, u64),
    stack_end: u64,
    results: u64,
    boundaries: BTreeSet<u64>,
}

type Outcome<T> = Result<T, String>;

impl<'a> Program<'a> {
    pub fn new(linked: &'a Linked) -> Program<'a> {
        let record = linked.relocations[0].1 - linked.data_address;
        let bytes = u64::from_le_bytes(linked.data[16..24].try_into().expect("eight bytes"));
        let record = Record::parse(&linked.data[record as usize..(record + bytes) as usize]).expect("a record");
        let starts = linked.relocations[3..].iter().take(record.functions.len());
        Program { linked, starts: starts.enumerate().map(|(index, (_, at))| (*at, index)).collect(), record }
    }

    /// The function that has an address.
    pub fn function_at(&self, address: u64) -> Option<usize> {
        let function = self.starts.range(..=address).next_back().map(|(_, index)| *index)?;
        let entries = &self.linked.relocations[3 + self.starts.len()..];
        entries.iter().all(|(_, at)| *at > address).then_some(function)
    }

    /// Runs a function; an error tells how it escaped.
    pub fn run(&self, function: usize, random: &mut Random) -> Outcome<()> {
        let start = *self.starts.iter().find(|(_, index)| **index == function).expect("the function").0;
        let signature = self.record.signature(function as u32).expect("its signature");
        let (arguments, results) = convention(signature);
        let next = self.linked.relocations[3..].iter().map(|(_, at)| *at).filter(|at| *at > start).min();
        let end = next.unwrap_or(self.linked.text_address + self.linked.text.len() as u64);
        let from = (start - self.linked.text_address) as usize;
        let text = &self.linked.text[from..(end - self.linked.text_address) as usize];
        let boundaries = Decoder::with_ip(64, text, start, DecoderOptions::NONE).iter().map(|one| one.ip()).collect();
        let mut registers: [u64; 16] = std::array::from_fn(|_| random.number());
        registers[4] = STACK;
        let context = if results > 0 { 6 } else { 7 };
        registers[7] = RESULTS;
        registers[context] = CONTEXT;
        let mut run = Run {
            program: self,
            registers,
            initial: registers,
            bytes: HashMap::new(),
            carry: false,
            zero: false,
            sign: false,
            overflow: false,
            memory: (0x6000_0000_0000, 0x1_0000 * (random.next() % 3)),
            stack_end: STACK + 8 + arguments,
            results,
            boundaries,
            random,
        };
        run.put(STACK, RETURN, 8);
        run.publish();
        run.go(start)
    }
}

impl Run<'_> {
    fn put(&mut self, at: u64, value: u64, bytes: usize) {
        for (number, byte) in value.to_le_bytes().into_iter().take(bytes).enumerate() {
            self.bytes.insert(at.wrapping_add(number as u64), byte);
        }
    }

    fn take(&mut self, at: u64, bytes: usize) -> u64 {
        let linked = self.program.linked;
        let mut out = [0u8; 8];
        let made_up = self.random.number().to_le_bytes();
        for number in 0..bytes.min(8) {
            let at = at.wrapping_add(number as u64);
            let image = at.checked_sub(linked.data_address).and_then(|at| linked.data.get(at as usize));
            out[number] = image.copied().unwrap_or_else(|| *self.bytes.entry(at).or_insert(made_up[number]));
        }
        u64::from_le_bytes(out)
    }

    /// Tells the context where memory and tables are.
    fn publish(&mut self) {
        self.put(CONTEXT, self.memory.0, 8);
        self.put(CONTEXT + 8, self.memory.1, 8);
        for table in 0..self.program.record.tables.len() as u64 {
            let at = CONTEXT + u64::from(TABLES) + table * 16;
            self.put(at, TABLE + (table << 32), 8);
            self.put(at + 8, 10, 8);
        }
        for (table, entry) in
            (0..self.program.record.tables.len() as u64).flat_map(|table| (0..10).map(move |entry| (table, entry)))
        {
            let function = self.random.next() % (self.program.record.functions.len() as u64 + 1);
            self.put(TABLE + (table << 32) + entry * 4, if function == 0 { u64::MAX } else { function - 1 }, 4);
        }
    }

    fn is_guarded(&self) -> bool {
        self.program.linked.data[HEADER_BOUNDS] == Bounds::Guarded as u8
    }

    fn check(&self, at: u64, bytes: u64, writes: bool) -> Outcome<()> {
        let record = &self.program.record;
        let within = |start: u64, size: u64| at >= start && at.wrapping_sub(start).saturating_add(bytes) <= size;
        let globals = u64::from(global(record.tables.len() as u32, 0));
        let context = u64::from(global(record.tables.len() as u32, record.globals.len() as u32));
        let tables = (0..record.tables.len() as u64).any(|table| within(TABLE + (table << 32), 40));
        let linked = self.program.linked;
        // What is behind memory in a window faults, which ends the program.
        let memory = if self.is_guarded() { WINDOW_BYTES } else { self.memory.1 };
        let is_ours = within(self.memory.0, memory)
            || tables
            || within(CONTEXT + u64::from(ARGUMENTS), u64::from(TABLES - ARGUMENTS))
            || within(CONTEXT + globals, context - globals)
            || within(self.registers[4], self.stack_end.saturating_sub(self.registers[4]))
            || within(RESULTS, self.results)
            || !writes && (within(CONTEXT, 16) || within(CONTEXT + 32, context - 32))
            || !writes && within(linked.data_address, linked.data.len() as u64);
        if is_ours {
            Ok(())
        } else {
            Err(format!("{} of {bytes} bytes at {at:#x}", if writes { "a write" } else { "a read" }))
        }
    }

    fn address(&self, one: &Instruction) -> u64 {
        if one.is_ip_rel_memory_operand() {
            return one.ip_rel_memory_address();
        }
        let part =
            |name: Register| if name == Register::None { 0 } else { self.registers[name.full_register().number()] };
        let index = part(one.memory_index()).wrapping_mul(u64::from(one.memory_index_scale()));
        part(one.memory_base()).wrapping_add(index).wrapping_add(one.memory_displacement64())
    }

    fn size(one: &Instruction, operand: u32) -> usize {
        match one.op_kind(operand) {
            OpKind::Memory => one.memory_size().size(),
            OpKind::Register => one.op_register(operand).size(),
            _ if operand > 0 => Run::size(one, 0),
            _ => 8,
        }
    }

    fn read(&mut self, one: &Instruction, operand: u32) -> Outcome<u64> {
        let bytes = Run::size(one, operand);
        let all = match one.op_kind(operand) {
            OpKind::Memory => {
                let at = self.address(one);
                self.check(at, bytes as u64, false)?;
                self.take(at, bytes)
            }
            OpKind::Register => {
                let name = one.op_register(operand);
                let is_high = matches!(name, Register::AH | Register::BH | Register::CH | Register::DH);
                self.registers[name.full_register().number()] >> if is_high { 8 } else { 0 }
            }
            _ => one.immediate(operand),
        };
        Ok(if bytes >= 8 { all } else { all & ((1 << (bytes * 8)) - 1) })
    }

    fn write(&mut self, one: &Instruction, value: u64) -> Outcome<()> {
        let bytes = Run::size(one, 0);
        if one.op0_kind() == OpKind::Memory {
            let at = self.address(one);
            self.check(at, bytes as u64, true)?;
            self.put(at, value, bytes);
            return Ok(());
        }
        let name = one.op0_register();
        let register = &mut self.registers[name.full_register().number()];
        *register = match bytes {
            8 => value,
            4 => value & 0xffff_ffff,
            2 => *register & !0xffff | value & 0xffff,
            _ if matches!(name, Register::AH | Register::BH | Register::CH | Register::DH) => {
                *register & !0xff00 | (value & 0xff) << 8
            }
            _ => *register & !0xff | value & 0xff,
        };
        Ok(())
    }

    fn make_up_flags(&mut self) {
        let made_up = self.random.next();
        (self.carry, self.zero, self.sign, self.overflow) =
            (made_up & 1 != 0, made_up & 6 == 0, made_up & 8 != 0, made_up & 16 != 0);
    }

    fn subtract(&mut self, left: u64, right: u64, bytes: usize) -> u64 {
        let bits = bytes as u32 * 8;
        let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        let (left, right) = (left & mask, right & mask);
        let result = left.wrapping_sub(right) & mask;
        self.carry = left < right;
        self.zero = result == 0;
        self.sign = result >> (bits - 1) & 1 != 0;
        self.overflow = ((left ^ right) & (left ^ result)) >> (bits - 1) & 1 != 0;
        result
    }

    fn logic(&mut self, result: u64, bytes: usize) {
        let mask = if bytes == 8 { u64::MAX } else { (1 << (bytes * 8)) - 1 };
        (self.carry, self.overflow, self.zero) = (false, false, result & mask == 0);
        self.sign = result >> (bytes * 8 - 1) & 1 != 0;
    }

    fn holds(&mut self, one: &Instruction) -> bool {
        use iced_x86::ConditionCode as C;
        match one.condition_code() {
            C::o => self.overflow,
            C::no => !self.overflow,
            C::b => self.carry,
            C::ae => !self.carry,
            C::e => self.zero,
            C::ne => !self.zero,
            C::be => self.carry || self.zero,
            C::a => !self.carry && !self.zero,
            C::s => self.sign,
            C::ns => !self.sign,
            C::l => self.sign != self.overflow,
            C::ge => self.sign == self.overflow,
            C::le => self.zero || self.sign != self.overflow,
            C::g => !self.zero && self.sign == self.overflow,
            _ => self.random.next() & 1 != 0,
        }
    }

    fn go(&mut self, start: u64) -> Outcome<()> {
        let linked = self.program.linked;
        let mut at = start;
        let mut factory = InstructionInfoFactory::new();
        for _ in 0..STEPS {
            if !self.boundaries.contains(&at) {
                return Err(format!("it runs to {at:#x}"));
            }
            let bytes = &linked.text[(at - linked.text_address) as usize..];
            let one = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
            let next = self.step(&one, &mut factory).map_err(|why| format!("at {at:#x}: {why}"))?;
            match next {
                Some(next) => at = next,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Performs an instruction; returns the address of the next one, or `None` at the end.
    fn step(&mut self, one: &Instruction, factory: &mut InstructionInfoFactory) -> Outcome<Option<u64>> {
        let bytes = Run::size(one, 0);
        let is_integer = one.op0_kind() != OpKind::Register || one.op0_register().is_gpr();
        match one.mnemonic() {
            Mnemonic::Ud2 | Mnemonic::Int3 => return Ok(None),
            Mnemonic::Nop => {}
            Mnemonic::Mov => {
                let value = self.read(one, 1)?;
                self.write(one, value)?;
            }
            Mnemonic::Movzx => {
                let value = self.read(one, 1)?;
                self.write(one, value)?;
            }
            Mnemonic::Movsx | Mnemonic::Movsxd => {
                let shift = 64 - 8 * Run::size(one, 1) as u32;
                let value = ((self.read(one, 1)? << shift) as i64 >> shift) as u64;
                self.write(one, value)?;
            }
            Mnemonic::Lea => {
                let address = self.address(one);
                self.write(one, address)?;
            }
            Mnemonic::Add => {
                let (left, right) = (self.read(one, 0)?, self.read(one, 1)?);
                self.make_up_flags();
                self.write(one, left.wrapping_add(right))?;
            }
            Mnemonic::Sub => {
                let (left, right) = (self.read(one, 0)?, self.read(one, 1)?);
                let result = self.subtract(left, right, bytes);
                self.write(one, result)?;
            }
            Mnemonic::Cmp => {
                let (left, right) = (self.read(one, 0)?, self.read(one, 1)?);
                self.subtract(left, right, bytes);
            }
            Mnemonic::Test | Mnemonic::And | Mnemonic::Or | Mnemonic::Xor => {
                let (left, right) = (self.read(one, 0)?, self.read(one, 1)?);
                let result = match one.mnemonic() {
                    Mnemonic::Or => left | right,
                    Mnemonic::Xor => left ^ right,
                    _ => left & right,
                };
                self.logic(result, bytes);
                if one.mnemonic() != Mnemonic::Test {
                    self.write(one, result)?;
                }
            }
            Mnemonic::Shl | Mnemonic::Shr if one.op1_kind() == OpKind::Immediate8 => {
                let by = u32::from(one.immediate8()) & if bytes == 8 { 63 } else { 31 };
                let value = self.read(one, 0)?;
                self.make_up_flags();
                let shl = value.checked_shl(by).unwrap_or(0);
                self.write(one, if one.mnemonic() == Mnemonic::Shl { shl } else { value >> by })?;
            }
            Mnemonic::Push => {
                let value = self.read(one, 0)?;
                self.registers[4] = self.registers[4].wrapping_sub(8);
                self.check(self.registers[4], 8, true)?;
                self.put(self.registers[4], value, 8);
            }
            Mnemonic::Pop => {
                self.check(self.registers[4], 8, false)?;
                let value = self.take(self.registers[4], 8);
                self.registers[4] = self.registers[4].wrapping_add(8);
                self.write(one, value)?;
            }
            Mnemonic::Jmp | Mnemonic::Call => {
                let target =
                    if one.op0_kind() == OpKind::NearBranch64 { one.near_branch64() } else { self.read(one, 0)? };
                return self.transfer(one, target);
            }
            Mnemonic::Ret => {
                let released = if one.op_count() > 0 { u64::from(one.immediate16()) } else { 0 };
                self.leave(released)?;
                return Ok(None);
            }
            _ if one.is_jcc_short_or_near() => {
                return Ok(Some(if self.holds(one) { one.near_branch64() } else { one.next_ip() }));
            }
            _ if is_integer && one.op_count() == 2 && one.condition_code() != iced_x86::ConditionCode::None => {
                let (old, new) = (self.read(one, 0)?, self.read(one, 1)?);
                let value = if self.holds(one) { new } else { old };
                self.write(one, value)?;
            }
            _ => self.make_up(one, factory)?,
        }
        Ok(Some(one.next_ip()))
    }

    /// An instruction of which only places are known.
    fn make_up(&mut self, one: &Instruction, factory: &mut InstructionInfoFactory) -> Outcome<()> {
        if one.flow_control() != FlowControl::Next {
            return Err(format!("{:?}", one.mnemonic()));
        }
        let info = factory.info(one).clone();
        for used in info.used_memory() {
            let bytes = used.memory_size().size();
            let at = used.virtual_address(0, |name, _, _| {
                Some(if name.is_segment_register() { 0 } else { self.registers[name.full_register().number()] })
            });
            let at = if one.is_ip_rel_memory_operand() { one.ip_rel_memory_address() } else { at.expect("an address") };
            let writes = !matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
            self.check(at, bytes as u64, writes)?;
            for number in 0..if writes { bytes } else { 0 } {
                let byte = self.random.next() as u8;
                self.bytes.insert(at.wrapping_add(number as u64), byte);
            }
        }
        for used in info.used_registers() {
            let name = used.register();
            if name.is_gpr() && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead) {
                let number = self.random.number();
                let is_narrow = one.op0_kind() == OpKind::Register && one.op0_register().is_gpr32();
                self.registers[name.full_register().number()] = if is_narrow { number & 0xffff_ffff } else { number };
            }
        }
        self.make_up_flags();
        Ok(())
    }

    fn transfer(&mut self, one: &Instruction, target: u64) -> Outcome<Option<u64>> {
        let is_call = one.mnemonic() == Mnemonic::Call;
        if !is_call && self.boundaries.contains(&target) && !self.program.starts.contains_key(&target) {
            return Ok(Some(target));
        }
        let is_template = target == HOST || target == BUILTIN;
        let (arguments, results) = match self.program.starts.get(&target) {
            Some(index) => convention(self.program.record.signature(*index as u32).expect("a signature")),
            None if is_template && is_call => (0, 0),
            None => return Err(format!("it goes to {target:#x}")),
        };
        if self.registers[if results > 0 { 6 } else { 7 }] != CONTEXT {
            return Err("a callee gets no context".into());
        }
        if !is_call {
            if results > 0 && (self.registers[7] != RESULTS || results > self.results) {
                return Err("a callee gets an area for results that is not the caller's".into());
            }
            self.leave(arguments)?;
            return Ok(None);
        }
        let above = self.registers[4].wrapping_add(arguments);
        if !self.registers[4].is_multiple_of(16) || above > STACK {
            return Err("the stack at a call".into());
        }
        if results > 0 {
            let area = self.registers[7];
            let is_own = area == RESULTS && results <= self.results;
            if !is_own && (area < above || area.saturating_add(results) > STACK) {
                return Err("an area for results that is not in the frame".into());
            }
            self.bytes.retain(|at, _| !(area..area + results).contains(at));
        }
        self.registers[4] = above;
        self.bytes.retain(|at, _| *at >= above || *at < 0x7ff0_0000_0000);
        for register in (0..16).filter(|register| *register != 4 && !PRESERVED.contains(register)) {
            self.registers[register] = self.random.number();
        }
        let moved = if self.is_guarded() { 0 } else { 0x10_0000_0000 };
        self.memory = (self.memory.0 + moved, self.memory.1 + 0x1_0000 * (self.random.next() % 2));
        self.publish();
        self.make_up_flags();
        Ok(Some(one.next_ip()))
    }

    fn leave(&mut self, arguments: u64) -> Outcome<()> {
        let at = self.registers[4];
        self.check(at, 8, false)?;
        if self.take(at, 8) != RETURN || at.wrapping_add(8 + arguments) != self.stack_end {
            return Err("it does not return to its caller".into());
        }
        match PRESERVED.iter().find(|register| self.registers[**register] != self.initial[**register]) {
            Some(register) => Err(format!("register {register} is not preserved")),
            None => Ok(()),
        }
    }
}
