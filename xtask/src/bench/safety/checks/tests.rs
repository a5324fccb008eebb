//! Tests on code assembled by hand. The function that reports failures lies at [`PANIC`].

use iced_x86::Mnemonic;

use super::*;

const START: u64 = 0x1000;
const PANIC: u64 = 0x2000;

/// A `call` of the panicking function from this offset.
fn call_panic(at: usize) -> Vec<u8> {
    let distance = (PANIC - (START + at as u64 + 5)) as u32;
    [&[0xe8][..], &distance.to_le_bytes()].concat()
}

/// Code, with a call of the panicking function at its end.
fn with_call(code: &[u8]) -> Vec<u8> {
    [code, &call_panic(code.len())].concat()
}

fn edited(mut code: Vec<u8>) -> (Vec<u8>, Counts) {
    let counts = remove(&mut code, START, &BTreeMap::from([(PANIC, Kind::Bounds)]), &BTreeSet::new());
    (code, counts)
}

fn one_check(comparisons: usize) -> Counts {
    Counts { removed: BTreeMap::from([(Kind::Bounds, 1)]), comparisons, remaining: 0 }
}

#[test]
fn a_check_and_its_comparison_become_one_nop() {
    // cmp rdi, rsi; jae 8; mov eax, edi; ret; call panic
    let (code, counts) = edited(with_call(&[0x48, 0x39, 0xf7, 0x73, 0x03, 0x89, 0xf8, 0xc3]));
    assert_eq!(counts, one_check(1));
    assert_eq!(code[..8], [0x64, 0x0f, 0x1f, 0x40, 0x00, 0x89, 0xf8, 0xc3]);
    assert_eq!(code[8..], call_panic(8));
}

#[test]
fn the_failing_path_may_prepare_arguments_and_jump() {
    // cmp rdi, rsi; jae 6; ret; jmp 9 (at 6); int3; lea rdx, [rip+0] (at 9); call panic
    let cold = [0xeb, 0x01, 0xcc, 0x48, 0x8d, 0x15, 0, 0, 0, 0];
    let (code, counts) = edited(with_call(&[&[0x48, 0x39, 0xf7, 0x73, 0x01, 0xc3][..], &cold].concat()));
    assert_eq!((counts, &code[..5]), (one_check(1), &[0x64, 0x0f, 0x1f, 0x40, 0x00][..]));
}

#[test]
fn a_jump_to_anything_else_is_kept() {
    // cmp rdi, rsi; jae 8; mov eax, edi; ret; xor eax, eax; ret
    let before = vec![0x48, 0x39, 0xf7, 0x73, 0x03, 0x89, 0xf8, 0xc3, 0x31, 0xc0, 0xc3];
    assert_eq!(edited(before.clone()), (before, Counts::default()));
    // A failing path that decides again: test eax, eax; je over the call.
    let before = [with_call(&[0x73, 0x01, 0xc3, 0x85, 0xc0, 0x90, 0xc3]), vec![0xc3]].concat();
    let (code, counts) = edited(before.clone());
    assert_eq!((code, counts), (before, Counts { remaining: 1, ..Counts::default() }));
}

#[test]
fn flags_that_are_used_later_keep_the_comparison() {
    // cmp rdi, rsi; jae 9; sete al; ret; call panic
    let (code, counts) = edited(with_call(&[0x48, 0x39, 0xf7, 0x73, 0x04, 0x0f, 0x94, 0xc0, 0xc3]));
    assert_eq!(counts, one_check(0));
    assert_eq!(code[..9], [0x48, 0x39, 0xf7, 0x64, 0x90, 0x0f, 0x94, 0xc0, 0xc3]);
    // An increment does not set the carry, which the next one adds: cmp; jae; inc eax; adc eax, 0; ret.
    let (code, counts) = edited(with_call(&[0x48, 0x39, 0xf7, 0x73, 0x06, 0xff, 0xc0, 0x83, 0xd0, 0x00, 0xc3]));
    assert_eq!((counts, &code[..5]), (one_check(0), &[0x48, 0x39, 0xf7, 0x64, 0x90][..]));
}

#[test]
fn a_shift_does_not_end_the_use_of_flags() {
    // cmp; jae; shl eax, cl; setb al; ret: by 0 the shift leaves the carry as it is.
    let (code, counts) = edited(with_call(&[0x48, 0x39, 0xf7, 0x73, 0x06, 0xd3, 0xe0, 0x0f, 0x92, 0xc0, 0xc3]));
    assert_eq!((counts, &code[..3]), (one_check(0), &[0x48, 0x39, 0xf7][..]));
}

#[test]
fn arithmetic_that_sets_the_flags_is_kept() {
    // add edi, esi; jo 7; mov eax, edi; ret; call panic
    let (code, counts) = edited(with_call(&[0x01, 0xf7, 0x70, 0x03, 0x89, 0xf8, 0xc3]));
    assert_eq!((counts, &code[..4]), (one_check(0), &[0x01, 0xf7, 0x64, 0x90][..]));
}

#[test]
fn a_jump_over_the_failing_call_is_always_taken() {
    // cmp rdi, rsi; jb 10; call panic; mov eax, edi; ret
    let code = [with_call(&[0x48, 0x39, 0xf7, 0x72, 0x05]), vec![0x89, 0xf8, 0xc3]].concat();
    let (code, counts) = edited(code);
    assert_eq!(counts, one_check(1));
    assert_eq!(code[..5], [0x64, 0x66, 0x90, 0xeb, 0x05]);
}

#[test]
fn a_far_jump_over_the_failing_call_keeps_its_target() {
    // cmp rdi, rsi; jb 14; call panic; ret
    let code = [with_call(&[0x48, 0x39, 0xf7, 0x0f, 0x82, 5, 0, 0, 0]), vec![0xc3]].concat();
    let (code, counts) = edited(code);
    assert_eq!((counts, &code[3..9]), (one_check(1), &[0xe9, 6, 0, 0, 0, 0x90][..]));
    let decoded = Code::decode(&code, START);
    assert_eq!(decoded.get(1).and_then(target), Some(START + 14));
}

#[test]
fn code_in_which_no_nop_would_mark_the_change_is_kept() {
    // add edi, esi; jno 9; call panic; ret
    let before = [with_call(&[0x01, 0xf7, 0x71, 0x05]), vec![0xc3]].concat();
    assert_eq!(edited(before.clone()), (before, Counts { remaining: 1, ..Counts::default() }));
}

#[test]
fn control_may_still_go_to_the_jump_alone() {
    // cmp rdi, rsi; jae 8 (at 3); jmp 3; nop; call panic (at 8): the flags are those of before, again and again.
    let code = with_call(&[0x48, 0x39, 0xf7, 0x73, 0x03, 0xeb, 0xfc, 0x90]);
    let (code, _) = edited(code);
    assert_eq!(code[3..7], [0x64, 0x90, 0xeb, 0xfc]);
    // The same by a table of jumps.
    let mut code = with_call(&[0x48, 0x39, 0xf7, 0x73, 0x03, 0x89, 0xf8, 0xc3]);
    let failing = BTreeMap::from([(PANIC, Kind::Bounds)]);
    remove(&mut code, START, &failing, &BTreeSet::from([START + 3]));
    assert_eq!(code[..5], [0x64, 0x66, 0x90, 0x64, 0x90]);
}

#[test]
fn each_nop_is_one_instruction_with_the_override() {
    for length in 1..=40 {
        let mut bytes = vec![0xcc; length];
        nops(&mut bytes);
        let code = Code::decode(&bytes, START);
        assert!(code.iter().all(|(_, instruction)| instruction.mnemonic() == Mnemonic::Nop), "{bytes:02x?}");
        assert_eq!(code.iter().count(), length.div_ceil(NOP_BYTES_MAX), "{bytes:02x?}");
        assert!(length == 1 || bytes[0] == 0x64, "{bytes:02x?}");
    }
}
