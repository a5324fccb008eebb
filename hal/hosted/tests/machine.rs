//! The hosted machine under a minimal kernel.

#[path = "support/code.rs"]
mod code;
#[path = "support/mod.rs"]
mod support;

use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use abi::limits::{STACK_GUARD_BYTES, STACK_SLOT_BYTES};
use hal_api::{DeviceKind, DeviceOperation, DeviceRequest, Fault, FaultKind, Machine, MapError, Segment, Submitted};
use support::{
    BAD_INTERRUPTS, CONFINED, DISK_BYTES, DISK_FILE, FAULTED, INTERRUPTS, TIMER_TICKS, completion, machine, map_code,
    new_image_address, new_page, new_slot, on_processor, run_sip, shared_word, take_fault,
};

/// Environment variable of a child, so that running ignored tests elsewhere does not end the process.
const CHILD: &str = "HAL_HOSTED_TEST_CHILD";

/// Runs code that must fault, and returns the fault and the code's address.
fn fault_of(bytes: &'static [u8], argument: usize) -> (Fault, usize) {
    let entry = map_code(bytes);
    (fault_at(entry, argument), entry)
}

/// Runs mapped code that must fault, and returns the fault.
fn fault_at(entry: usize, argument: usize) -> Fault {
    let (sender, receiver) = channel();
    on_processor(move || {
        assert_eq!(run_sip(entry, new_slot(), argument), FAULTED);
        sender.send(take_fault()).expect("the test waits");
    });
    receiver.recv().ok().flatten().expect("a fault")
}

#[test]
fn code_runs_and_returns() {
    let entry = map_code(code::read_there());
    let page = new_page();
    shared_word(page).store(77, Ordering::SeqCst);
    on_processor(move || assert_eq!(run_sip(entry, new_slot(), page), 77));
}

#[test]
fn everything_survives_hundreds_of_interrupts() {
    let entry = map_code(code::compare_all());
    let page = new_page();
    let before = INTERRUPTS.load(Ordering::SeqCst);
    let interrupter = thread::spawn(move || {
        let limit = Instant::now() + Duration::from_secs(20);
        while INTERRUPTS.load(Ordering::SeqCst) < before + 500 && Instant::now() < limit {
            machine().interrupt(0);
            thread::sleep(Duration::from_micros(200));
        }
        shared_word(page).store(1, Ordering::SeqCst);
    });
    on_processor(move || assert_eq!(run_sip(entry, new_slot(), page), 0, "the line of the comparison that failed"));
    interrupter.join().expect("the interrupter ends");
    assert!(INTERRUPTS.load(Ordering::SeqCst) >= before + 500);
    assert_eq!(BAD_INTERRUPTS.load(Ordering::SeqCst), 0, "entries against the calling convention");
}

#[test]
fn the_timer_interrupts_an_endless_loop() {
    let entry = map_code(code::compare_all());
    let page = new_page();
    let ticks = TIMER_TICKS.load(Ordering::SeqCst);
    let stopper = thread::spawn(move || {
        let limit = Instant::now() + Duration::from_secs(20);
        while TIMER_TICKS.load(Ordering::SeqCst) < ticks + 5 && Instant::now() < limit {
            thread::sleep(Duration::from_millis(1));
        }
        shared_word(page).store(1, Ordering::SeqCst);
    });
    on_processor(move || assert_eq!(run_sip(entry, new_slot(), page), 0));
    stopper.join().expect("the stopper ends");
    assert!(TIMER_TICKS.load(Ordering::SeqCst) >= ticks + 5);
}

#[test]
fn an_interrupt_without_room_on_the_stack_is_a_stack_overflow() {
    let entry = map_code(code::loop_on_stack());
    on_processor(move || {
        let slot = new_slot();
        let start = abi::stack::start(slot);
        assert_eq!(run_sip(entry, slot, start + STACK_GUARD_BYTES + 1024), FAULTED);
        let fault = take_fault().expect("a fault");
        assert_eq!(fault.kind, FaultKind::Memory);
        assert!((start..start + STACK_GUARD_BYTES).contains(&fault.address));
        assert_eq!(fault.stack, start + STACK_GUARD_BYTES + 1024);
    });
}

#[test]
fn a_stack_pointer_from_nowhere_is_a_fault() {
    let entry = map_code(code::loop_on_stack());
    assert_eq!(fault_at(entry, 0x10).kind, FaultKind::Memory);
}

#[test]
fn a_null_read_is_a_memory_fault() {
    let (fault, entry) = fault_of(code::read_there(), 0);
    assert_eq!((fault.kind, fault.instruction, fault.address), (FaultKind::Memory, entry, 0));
}

#[test]
fn an_address_that_is_none_is_a_memory_fault() {
    let (fault, _) = fault_of(code::read_there(), 0x8000_0000_0000_0000);
    assert_eq!(fault.kind, FaultKind::Memory);
}

#[test]
fn undefined_and_privileged_instructions_are_instruction_faults() {
    for bytes in [code::undefined(), code::halt()] {
        let (fault, entry) = fault_of(bytes, 0);
        assert_eq!((fault.kind, fault.instruction), (FaultKind::Instruction, entry));
    }
}

#[test]
fn a_breakpoint_is_a_trap() {
    assert_eq!(fault_of(code::breakpoint(), 0).0.kind, FaultKind::Trap);
}

#[test]
fn a_division_by_zero_is_an_arithmetic_fault() {
    assert_eq!(fault_of(code::divide(), 0).0.kind, FaultKind::Arithmetic);
}

#[test]
fn wild_jumps_are_memory_faults_of_the_sip() {
    let data = new_page();
    shared_word(data).store(0xc3, Ordering::SeqCst);
    for target in [0x1234, data, machine().layout().images.base + (1 << 20) + 5] {
        let (fault, _) = fault_of(code::jump_there(), target);
        assert_eq!((fault.kind, fault.instruction), (FaultKind::Memory, target));
    }
}

#[test]
fn code_cannot_be_written_by_anyone() {
    let victim = map_code(code::read_there());
    let (fault, _) = fault_of(code::write_there(), victim);
    assert_eq!((fault.kind, fault.address), (FaultKind::Memory, victim));
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the process's mappings");
    let images = machine().layout().images;
    for line in maps.lines() {
        let mut fields = line.split_whitespace();
        let start = fields.next().and_then(|range| range.split('-').next()).expect("a range");
        let permissions = fields.next().expect("permissions");
        if images.contains(usize::from_str_radix(start, 16).expect("an address")) {
            assert!(!permissions.contains('w'), "{line}");
        }
        assert!(!(permissions.contains('w') && permissions.contains('x')), "{line}");
    }
}

#[test]
fn constants_cannot_be_executed() {
    let address = new_image_address();
    machine().map_image(&[Segment { address, bytes: code::read_there(), executable: false }]).expect("mapped");
    let (fault, _) = fault_of(code::jump_there(), address);
    assert_eq!((fault.kind, fault.instruction), (FaultKind::Memory, address));
}

#[test]
fn a_stack_overflow_hits_the_guard() {
    let entry = map_code(code::overflow());
    on_processor(move || {
        let slot = new_slot();
        assert_eq!(run_sip(entry, slot, 0), FAULTED);
        let fault = take_fault().expect("a fault");
        assert_eq!(fault.kind, FaultKind::Memory);
        let slot = abi::stack::start(slot);
        assert!(slot <= fault.address && fault.address < slot + STACK_GUARD_BYTES + abi::limits::STACK_RESERVE_BYTES);
    });
}

#[test]
fn twenty_thousand_guards_need_few_mappings_and_outlive_a_decommit() {
    let stacks = machine().layout().stacks;
    for slot in 0..20_000 {
        machine().guard(abi::stack::start(stacks.base + slot * STACK_SLOT_BYTES), STACK_GUARD_BYTES);
    }
    if host_has_light_guards() {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("the process's mappings");
        assert!(maps.lines().count() < 1_000);
    }
    machine().decommit(stacks.base + 5 * STACK_SLOT_BYTES, STACK_SLOT_BYTES);
    for slot in [0, 5, 19_999] {
        let guard = abi::stack::start(stacks.base + slot * STACK_SLOT_BYTES);
        let (fault, _) = fault_of(code::write_there(), guard + 8);
        assert_eq!((fault.kind, fault.address), (FaultKind::Memory, guard + 8));
        let entry = map_code(code::write_there());
        on_processor(move || assert_eq!(run_sip(entry, new_slot(), guard + STACK_GUARD_BYTES), 1));
    }
}

/// Returns whether this is Linux 6.13 or later.
fn host_has_light_guards() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("the host's version");
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(13))
}

#[test]
fn decommitted_memory_reads_as_zero() {
    let page = new_page();
    shared_word(page).store(5, Ordering::SeqCst);
    machine().decommit(page, 4096);
    assert_eq!(shared_word(page).load(Ordering::SeqCst), 0);
}

#[test]
fn an_image_is_mapped_whole_or_not_at_all() {
    let address = new_image_address();
    let code = Segment { address, bytes: code::read_there(), executable: true };
    let outside = Segment { address: machine().layout().memory.base, bytes: &[1], executable: false };
    assert_eq!(machine().map_image(&[code, outside]), Err(MapError));
    assert_eq!(machine().map_image(&[code, Segment { address, bytes: &[1], executable: false }]), Err(MapError));
    assert_eq!(machine().map_image(&[Segment { address: address + 1, ..code }]), Err(MapError));
    assert_eq!(machine().map_image(&[code]), Ok(()));
    assert_eq!(machine().map_image(&[code]), Err(MapError), "sealed for good");
}

#[test]
fn idle_uses_no_processor_time_and_wakes() {
    let waker = thread::spawn(|| {
        thread::sleep(Duration::from_millis(50));
        machine().wake(0);
    });
    on_processor(|| {
        let ticks = TIMER_TICKS.load(Ordering::SeqCst);
        let before = machine().monotonic_ns();
        machine().idle(0, before + 10_000_000_000);
        machine().idle(0, machine().monotonic_ns() + 30_000_000);
        assert!(machine().monotonic_ns() - before < 5_000_000_000);
        assert!(TIMER_TICKS.load(Ordering::SeqCst) <= ticks + 1);
    });
    waker.join().expect("the waker ends");
}

/// Submits a request and waits for its completion: bytes transferred, or failure.
fn transfer(device: usize, operation: DeviceOperation, offset: u64, address: usize, bytes: usize) -> Result<u64, ()> {
    static TOKEN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let token = TOKEN.fetch_add(1, Ordering::SeqCst);
    match machine().device_submit(DeviceRequest { device, token, operation, offset, address, bytes }) {
        Submitted::Complete(result) => result.map(|done| done as u64).map_err(|_| ()),
        Submitted::Queued => match completion(token) {
            (done, false) => Ok(done),
            (_, true) => Err(()),
        },
    }
}

#[test]
fn disks_read_write_flush_and_check_their_bounds() {
    machine();
    on_processor(|| {
        let memory = machine().layout().memory.base + machine().layout().memory.bytes / 2;
        shared_word(memory + 8).store(0x1122_3344, Ordering::SeqCst);
        assert_eq!(transfer(1, DeviceOperation::Write, 4096, memory, 512), Ok(512));
        assert_eq!(transfer(1, DeviceOperation::Flush, 0, memory, 0), Ok(0));
        assert_eq!(transfer(1, DeviceOperation::Read, 4096, memory + 8192, 512), Ok(512));
        assert_eq!(shared_word(memory + 8200).load(Ordering::SeqCst), 0x1122_3344);
        let size = DISK_BYTES as u64;
        assert_eq!(transfer(1, DeviceOperation::Read, size - 512, memory, 512), Ok(512));
        assert_eq!(transfer(1, DeviceOperation::Read, size - 511, memory, 512), Err(()));
        assert_eq!(transfer(1, DeviceOperation::Write, u64::MAX, memory, 512), Err(()));
        assert_eq!(transfer(1, DeviceOperation::Read, 0, 0x1000, 512), Err(()), "memory that is not the kernel's");
        assert_eq!(transfer(2, DeviceOperation::Read, 0, memory, 9), Ok(9));
        assert_eq!(transfer(2, DeviceOperation::Write, 0, memory, 9), Err(()), "a read-only disk");
        assert_eq!(transfer(9, DeviceOperation::Read, 0, memory, 1), Err(()), "no such device");
    });
    let mut word = [0; 8];
    let file = DISK_FILE.get().expect("the machine was started");
    file.read_exact_at(&mut word, 4104).expect("the disk's file");
    assert_eq!(u64::from_le_bytes(word), 0x1122_3344);
}

#[test]
fn devices_are_listed() {
    let devices = machine().devices();
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["console", "disk0", "disk1", "sockets0", "random0"]);
    assert!(matches!(devices[1].kind, DeviceKind::Disk { bytes, read_only: false } if bytes == DISK_BYTES as u64));
    assert!(matches!(devices[2].kind, DeviceKind::Disk { bytes: 9, read_only: true }));
}

/// Not a test of its own: `a_kernel_fault_says_so_and_ends_the_process` runs it in a separate process.
#[test]
#[ignore = "ends its process"]
fn kernel_fault_child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    on_processor(|| {
        let null = std::hint::black_box(0x10_usize);
        shared_word(null).store(1, Ordering::SeqCst);
    });
}

#[test]
fn a_kernel_fault_says_so_and_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;
    let program = std::env::current_exe().expect("the test's own program");
    let output = std::process::Command::new(program)
        .args(["--exact", "kernel_fault_child", "--ignored", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .expect("the child runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("a fault in the kernel itself (SIGSEGV)") && said.contains("address 0x10"), "{said}");
    assert_eq!(output.status.signal(), Some(11));
}

/// Not a test of its own: `code_that_calls_the_host_is_ended_on_a_confined_machine` runs it in a separate process.
#[test]
#[ignore = "confines its process"]
fn host_call_child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let entry = map_code(code::ask_for_the_process());
    on_processor(move || {
        let answer = run_sip(entry, new_slot(), 0);
        println!("answer {answer} of {}, {:?}", std::process::id(), take_fault().map(|fault| fault.kind));
        // The machine continues, and images can still be mapped.
        let harmless = map_code(code::read_there());
        let page = new_page();
        shared_word(page).store(77, Ordering::SeqCst);
        println!("then {}", run_sip(harmless, new_slot(), page));
    });
}

fn host_call_child_says(confined: bool) -> String {
    let program = std::env::current_exe().expect("the test's own program");
    let mut command = std::process::Command::new(program);
    command.args(["--exact", "host_call_child", "--ignored", "--nocapture"]).env(CHILD, "1");
    if confined {
        command.env(CONFINED, "1");
    }
    let output = command.output().expect("the child runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn code_that_calls_the_host_is_ended_on_a_confined_machine() {
    let said = host_call_child_says(true);
    assert!(said.contains(&format!("answer {FAULTED} of ")) && said.contains("Some(HostCall)"), "{said}");
    assert!(said.contains("then 77"), "{said}");
    // The test can fail: on an unconfined machine the call succeeds.
    let said = host_call_child_says(false);
    let (answer, process) =
        said.split_once("answer ").and_then(|(_, rest)| rest.split_once(" of ")).expect("an answer");
    assert!(process.starts_with(&format!("{answer}, None")) && said.contains("then 77"), "{said}");
}
