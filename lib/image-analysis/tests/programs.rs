//! Small programs of machine code, and what is found of them.

#[path = "../../image-check/tests/common/elf.rs"]
#[allow(dead_code)]
mod elf;

use abi::{Automaton, Direction, MessageShape, NO_TRANSITION, StateRow};
use elf::{CODE, Elf, Symbol};
use image_analysis::{Assessment, Error, Program, Target, assess, conform};
use image_check::Data;
use manifest_model::{Assertions, Category, Code, ContractSide, ContractUse, Manifest};

/// The test image declares a contract, which nobody looks at here.
fn fingerprint(_: &str) -> [u8; 32] {
    [0; 32]
}

/// A piece of a function.
#[derive(Clone, Copy)]
enum Piece {
    Bytes(&'static [u8]),
    /// `call` of a function.
    Call(&'static str),
    /// `jmp` to a function.
    Jump(&'static str),
    /// `lea rax, [rip + function]`.
    Address(&'static str),
}

use Piece::{Address, Bytes, Call, Jump};

const RET: Piece = Bytes(&[0xc3]);
const UD2: Piece = Bytes(&[0x0f, 0x0b]);
/// `mov rax, rsp; or rax, 0x7fffff; mov rax, [rax - 0x1ff]`.
const TABLE: Piece = Bytes(&[0x48, 0x89, 0xe0, 0x48, 0x0d, 0xff, 0xff, 0x7f, 0, 0x48, 0x8b, 0x80, 1, 0xfe, 0xff, 0xff]);
/// `call [rax + 0x10]`.
const SEND: Piece = Bytes(&[0xff, 0x50, 0x10]);
const PANIC: (&str, &[Piece]) = ("core::panicking::panic", &[UD2]);

impl Piece {
    fn bytes(self, at: u64, place: &dyn Fn(&str) -> u64) -> Vec<u8> {
        let (opcode, name): (&[u8], _) = match self {
            Bytes(bytes) => return bytes.to_vec(),
            Call(name) => (&[0xe8], name),
            Jump(name) => (&[0xe9], name),
            Address(name) => (&[0x48, 0x8d, 0x05], name),
        };
        let next = at + opcode.len() as u64 + 4;
        [opcode, &(place(name).wrapping_sub(next) as i32).to_le_bytes()].concat()
    }

    fn length(self) -> u64 {
        self.bytes(0, &|_| 0).len() as u64
    }
}

type Function = (&'static str, &'static [Piece]);

fn image(functions: &[Function]) -> Vec<u8> {
    let mut symbols = Vec::new();
    let mut at = CODE;
    for (name, pieces) in functions {
        let size = pieces.iter().map(|piece| piece.length()).sum();
        symbols.push(Symbol { name, address: at, size, kind: 2 });
        at += size;
    }
    let place = |name: &str| symbols.iter().find(|symbol| symbol.name == name).expect("a function").address;
    let mut code = Vec::new();
    for piece in functions.iter().flat_map(|(_, pieces)| pieces.iter()) {
        code.extend(piece.bytes(CODE + code.len() as u64, &place));
    }
    // Relocations of the good image lead into its own code.
    let mut elf = Elf::with_relocations(elf::relocation(elf::DATA + 8, 8, elf::DATA as i64));
    elf.set_code(&code);
    elf.symbols = symbols;
    elf.write()
}

fn program(functions: &[Function]) -> Program {
    Program::read(&image(functions), Data::Refused, &|| ()).unwrap_or_else(|error| panic!("{error}"))
}

fn found(functions: &[Function], change: impl Fn(&mut Assertions)) -> Assessment {
    let mut assertions = Assertions::default();
    change(&mut assertions);
    assess(&program(functions), &assertions)
}

#[track_caller]
fn refused(functions: &[Function], change: impl Fn(&mut Assertions), expected: &str) {
    let Assessment { proved, faults } = found(functions, change);
    let [fault] = faults.as_slice() else { panic!("{faults:?} {proved:?}") };
    assert!(fault.what.contains(expected), "{}", fault.what);
    assert!(!fault.remedy.is_empty());
}

#[track_caller]
fn proved(functions: &[Function], change: impl Fn(&mut Assertions), expected: &str) {
    let Assessment { proved, faults } = found(functions, change);
    assert_eq!((proved.as_slice(), faults.as_slice()), (&[expected.to_string()][..], &[][..]));
}

/// `push rbx`, a call, `pop rbx`; a frame of 24 bytes; nothing.
const NESTED: &[Function] = &[
    ("main", &[Bytes(&[0x53]), Call("middle"), Bytes(&[0x5b]), RET]),
    ("middle", &[Bytes(&[0x48, 0x83, 0xec, 0x18]), Call("leaf"), Bytes(&[0x48, 0x83, 0xc4, 0x18]), RET]),
    ("leaf", &[RET]),
];

#[test]
fn stacks_of_calls_add_up() {
    let most = |bytes| move |asserted: &mut Assertions| asserted.max_stack.push(("main".into(), bytes));
    proved(NESTED, most(48), "`main` uses at most 48 bytes of stack, of 48");
    // `leaf` has nothing of its own: the path ends with the call that puts its return address there.
    refused(NESTED, most(47), "`main` uses up to 48 bytes of stack, and `max-stack` is 47: `main` calls `middle`");
    let whole = |asserted: &mut Assertions| asserted.max_stack.push(("*".into(), 48));
    proved(NESTED, whole, "the program uses at most 48 bytes of stack, of 48");
}

#[test]
fn a_frame_of_many_pages_and_one_below_the_stack_pointer_are_measured() {
    // lea r11, [rsp - 0x3000]; sub rsp, 0x1000; mov qword [rsp], 0; cmp rsp, r11; jne; add rsp, 0x3000
    let pages: &[Function] = &[(
        "main",
        &[
            Bytes(&[0x4c, 0x8d, 0x9c, 0x24, 0x00, 0xd0, 0xff, 0xff]),
            Bytes(&[0x48, 0x81, 0xec, 0, 0x10, 0, 0, 0x48, 0xc7, 0x04, 0x24, 0, 0, 0, 0, 0x4c, 0x39, 0xdc, 0x75, 0xec]),
            Bytes(&[0x48, 0x81, 0xc4, 0, 0x30, 0, 0]),
            RET,
        ],
    )];
    let most = |asserted: &mut Assertions| asserted.max_stack.push(("main".into(), 0x3000));
    proved(pages, most, "`main` uses at most 12288 bytes of stack, of 12288");
    // mov [rsp - 0x40], rax
    let red: &[Function] = &[("main", &[Bytes(&[0x48, 0x89, 0x44, 0x24, 0xc0]), RET])];
    proved(red, most, "`main` uses at most 64 bytes of stack, of 12288");
    // sub rsp, rdi: a frame whose size is an argument.
    let dynamic: &[Function] = &[("main", &[Bytes(&[0x48, 0x29, 0xfc]), RET])];
    refused(dynamic, most, "the frame of `main` depends on the run");
}

#[test]
fn recursion_has_no_bound() {
    let circle: &[Function] =
        &[("main", &[Call("even"), RET]), ("even", &[Call("odd"), RET]), ("odd", &[Jump("even")])];
    let most = |asserted: &mut Assertions| asserted.max_stack.push(("main".into(), 1 << 20));
    refused(circle, most, "no bound of its stack, and `max-stack` is 1048576: `even` calls `odd` calls `even`");
}

#[test]
fn a_panic_is_found_and_the_way_to_it_told() {
    let functions: &[Function] = &[
        ("main", &[Call("middle"), RET]),
        ("middle", &[Bytes(&[0x84, 0xc0, 0x74, 0x05]), Call("core::panicking::panic"), RET]),
        ("leaf", &[RET]),
        PANIC,
    ];
    let no_panic = |name: &'static str| move |asserted: &mut Assertions| asserted.no_panic.push(name.into());
    let way =
        "`main` can panic, and `no-panic` says that it does not: `main` calls `middle` calls `core::panicking::panic`";
    refused(functions, no_panic("main"), way);
    refused(functions, no_panic("*"), "the program can panic");
    proved(functions, no_panic("leaf"), "`leaf` cannot panic");
    let traps: &[Function] = &[("main", &[UD2])];
    refused(traps, no_panic("main"), "`main`, which ends the program (`ud2`)");
}

#[test]
fn a_panic_is_not_followed_for_anything_else() {
    // What lies behind a function that never returns is another function's.
    let functions: &[Function] = &[
        ("main", &[Call("core::panicking::panic")]),
        ("other", &[Bytes(&[0xf2, 0x0f, 0x58, 0xc1]), Bytes(&[0x48, 0x83, 0xec, 0x78]), Jump("other")]),
        PANIC,
    ];
    let asserted = |asserted: &mut Assertions| {
        asserted.max_stack.push(("main".into(), 8));
        asserted.no_float.push("main".into());
    };
    assert_eq!(found(functions, asserted).faults, []);
    let no_float = |asserted: &mut Assertions| asserted.no_float.push("other".into());
    refused(functions, no_float, "`other` can compute with floating-point numbers");
}

#[test]
fn allocations_are_found() {
    const ALLOC: &str = "sip::allocator::SipAllocator as core::alloc::global::GlobalAlloc::alloc";
    let functions: &[Function] = &[("main", &[Call(ALLOC), RET]), ("leaf", &[RET]), (ALLOC, &[RET])];
    let no_alloc = |name: &'static str| move |asserted: &mut Assertions| asserted.no_alloc.push(name.into());
    refused(functions, no_alloc("main"), "`main` can allocate");
    proved(functions, no_alloc("leaf"), "`leaf` does not allocate");
}

#[test]
fn function_pointers_lead_to_what_has_an_address() {
    // call rdi
    let functions: &[Function] = &[
        ("main", &[Address("taken"), Bytes(&[0xff, 0xd7]), RET]),
        ("taken", &[Call("core::panicking::panic")]),
        ("not-taken", &[RET]),
        PANIC,
    ];
    let no_panic = |asserted: &mut Assertions| asserted.no_panic.push("main".into());
    refused(functions, no_panic, "`main` calls `taken` calls `core::panicking::panic`");
    let reached = |most| move |asserted: &mut Assertions| asserted.functions_reached = Some(most);
    proved(functions, reached(3), "3 functions can be called, of at most 3");
    refused(functions, reached(2), "3 functions can be called, and `functions-reached` is 2");
    // call rax, which is known.
    let known: &[Function] = &[("main", &[Address("leaf"), Bytes(&[0xff, 0xd0]), RET]), ("leaf", &[RET])];
    assert_eq!(program(known).functions[0].calls[0].target, Target::Function(1));
}

#[test]
fn assertions_about_nothing_are_refused() {
    let no_panic = |asserted: &mut Assertions| asserted.no_panic.push("mine::leaf".into());
    let missing = "`no-panic` names `mine::leaf`, and the image has no such function; it has `leaf`";
    refused(NESTED, no_panic, missing);
    let mut elf = Elf::good();
    elf.symbols.clear();
    assert_eq!(Program::read(&elf.write(), Data::Refused, &|| ()).err(), Some(Error::NoSymbols));
    assert!(matches!(Program::read(b"no image", Data::Refused, &|| ()), Err(Error::Image(_))));
}

fn manifest(side: ContractSide) -> Manifest {
    let message = |name: &str, direction| MessageShape {
        name: name.into(),
        direction,
        scalar_words: 1,
        ranges: Vec::new(),
        blocks: Vec::new(),
        endpoints: Vec::new(),
    };
    let automaton = Automaton {
        name: "Echo".into(),
        queue_to_importer: 1,
        queue_to_exporter: 1,
        messages: vec![message("Say", Direction::ToExporter), message("Said", Direction::ToImporter)],
        states: vec![
            StateRow { name: "READY".into(), next: vec![1, NO_TRANSITION] },
            StateRow { name: "READY after Say".into(), next: vec![NO_TRANSITION, 0] },
        ],
    };
    let automaton = automaton.encode();
    let used = ContractUse { name: "Echo".into(), side, fingerprint: [0; 32], automaton, waits_for: None };
    let code = Code::Image { digest: [0; 32] };
    Manifest { contracts: vec![used], ..Manifest::plain("echo", "acme", Category::Test, code) }
}

/// `mov esi, 0x10000`, of the message Say: tag 0, one word.
const SAY: Piece = Bytes(&[0xbe, 0, 0, 1, 0]);
/// `mov esi, 0x10001`, of Said.
const SAID: Piece = Bytes(&[0xbe, 1, 0, 1, 0]);

#[test]
fn sends_are_compared_with_the_manifest() {
    let client = program(&[("main", &[TABLE, SAY, SEND, RET])]);
    let found = conform(&client, &manifest(ContractSide::Import));
    assert_eq!((found.sends, &found.unknown[..], &found.unused[..], &found.faults[..]), (1, &[][..], &[][..], &[][..]));
    let found = conform(&client, &manifest(ContractSide::Export));
    assert_eq!(found.faults[0].what, "`main` sends Echo.Say, and the manifest lists the other side of Echo only");
    assert_eq!(found.unused, ["Echo"]);
    let other = program(&[("main", &[TABLE, Bytes(&[0xbe, 7, 0, 0, 0]), SEND, RET])]);
    let found = conform(&other, &manifest(ContractSide::Both));
    assert_eq!(found.faults[0].what, "`main` sends a message of tag 7, which is of no contract of the manifest");
}

#[test]
fn sends_of_one_of_two_messages_and_of_any_are_told_apart() {
    // test al, al; je over the second number
    let either: &[Function] = &[
        ("main", &[TABLE, SAY, Bytes(&[0x84, 0xc9, 0x74, 0x05]), SAID, SEND, RET]),
        ("silent", &[TABLE, SAY, SEND, RET]),
    ];
    assert_eq!(program(either).functions[0].calls[0].second.expect("it is known").all().len(), 2);
    assert_eq!(conform(&program(either), &manifest(ContractSide::Both)).faults, []);
    // What no way leads to is not sent: `silent` is neither called nor has it an address.
    let found = conform(&program(either), &manifest(ContractSide::Import));
    assert_eq!((found.sends, found.faults.len()), (1, 1));
    // mov rsi, rdx
    let any = program(&[("main", &[TABLE, Bytes(&[0x48, 0x89, 0xd6]), SEND, RET])]);
    let found = conform(&any, &manifest(ContractSide::Export));
    assert_eq!(
        (&found.unknown[..], &found.unused[..], &found.faults[..]),
        (&["main".to_string()][..], &[][..], &[][..])
    );
}

/// Functions of arbitrary instructions that the image check allows.
#[test]
fn any_code_is_read_in_bounded_time() {
    const PIECES: [&[u8]; 14] = [
        &[0x53],
        &[0x5b],
        &[0xc3],
        &[0x48, 0x83, 0xec, 0x18],
        &[0x48, 0x83, 0xc4, 0x18],
        &[0x48, 0x89, 0xe5],
        &[0x48, 0x89, 0xec],
        &[0xc9],
        &[0xff, 0xd0],
        &[0xff, 0x50, 0x10],
        &[0xff, 0xe0],
        &[0x75, 0x00],
        &[0xeb, 0x00],
        &[0x48, 0x83, 0xe4, 0xf0],
    ];
    let mut seed = 1_u64;
    let mut next = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % most
    };
    let mut read = 0;
    for _ in 0..400 {
        let mut code = Vec::new();
        let mut starts = Vec::new();
        for _ in 0..next(40) + 1 {
            starts.push(code.len());
            code.extend_from_slice(PIECES[next(PIECES.len())]);
        }
        // Branches lead to the beginning of some instruction.
        for &start in &starts {
            if matches!(code[start], 0x75 | 0xeb) {
                let to = starts[next(starts.len())] as i64 - (start as i64 + 2);
                code[start + 1] = i8::try_from(to).unwrap_or(0) as u8;
            }
        }
        let mut elf = Elf::with_relocations(elf::relocation(elf::DATA + 8, 8, elf::DATA as i64));
        elf.set_code(&code);
        let middle = starts[starts.len() / 2] as u64;
        let symbol = |name, address, size| Symbol { name, address, size, kind: 2 };
        elf.symbols = vec![symbol("first", CODE, middle.max(1)), symbol("second", CODE + middle, code.len() as u64)];
        let Ok(program) = Program::read(&elf.write(), Data::Refused, &|| ()) else { continue };
        read += 1;
        let mut asserted = Assertions { functions_reached: Some(1), ..Assertions::default() };
        asserted.max_stack.push(("*".into(), 64));
        for list in [&mut asserted.no_panic, &mut asserted.no_alloc, &mut asserted.no_float] {
            list.push("*".into());
        }
        let Assessment { proved, faults } = assess(&program, &asserted);
        assert_eq!(proved.len() + faults.len(), 5, "{proved:?} {faults:?}");
    }
    assert!(read > 300, "{read}");
}
