//! The tables of each processor: segments, task state with the interrupt stacks, and its area for the way to domains;
//! and the shared interrupt table.
//!
//! Every kind of vector has a stack of its own: interrupted code may use the red zone of 128 bytes below its
//! stack pointer (System V ABI 3.2.2), and its stack may be the missing page.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use x86_64::VirtAddr;
use x86_64::instructions::segmentation::{CS, DS, ES, SS, Segment};
use x86_64::instructions::tables::load_tss;
use x86_64::structures::gdt::{Descriptor, GlobalDescriptorTable};
use x86_64::structures::idt::InterruptDescriptorTable;
use x86_64::structures::tss::TaskStateSegment;

use crate::crossing::{Area, DOMAIN_CODE, KERNEL_CODE, KERNEL_DATA, USER_CODE, USER_DATA};
use crate::interrupts;

/// Size of each interrupt stack in bytes.
const STACK_BYTES: usize = 16 * 1024;
/// Interrupts of devices, timers and other processors; they do not nest.
const STACK_INTERRUPT: u16 = 0;
/// Page faults, which may occur in an interrupt handler.
const STACK_PAGE_FAULT: u16 = 1;
/// The other exceptions.
const STACK_EXCEPTION: u16 = 2;
/// Double faults.
const STACK_DOUBLE: u16 = 3;
/// Non-maskable interrupts and machine checks.
const STACK_UNMASKED: u16 = 4;
const STACKS: usize = 5;

#[repr(align(16))]
struct Stack([u8; STACK_BYTES]);

/// The tables and stacks of one processor. Created once, in memory that is never freed.
#[repr(C)]
pub(crate) struct Tables {
    /// What the processor needs on the way from and to domains.
    pub(crate) area: Area,
    descriptors: GlobalDescriptorTable,
    task: TaskStateSegment,
    stacks: [Stack; STACKS],
}

/// In a page of its own, which is mapped in every domain.
#[repr(C, align(4096))]
struct Interrupts(UnsafeCell<InterruptDescriptorTable>);

/// Returns the page of the interrupt table.
pub(crate) fn interrupt_table() -> usize {
    (&raw const INTERRUPTS).addr()
}

// SAFETY: written once, by the boot processor, before any other starts (`FILLED`); only read afterwards.
unsafe impl Sync for Interrupts {}

static INTERRUPTS: Interrupts = Interrupts(UnsafeCell::new(InterruptDescriptorTable::new()));
static FILLED: AtomicBool = AtomicBool::new(false);

impl Tables {
    /// Fills in the tables and loads them on this processor.
    ///
    /// # Safety
    /// The place is memory for one `Tables`, zeroed, without another user. Called once on
    /// each processor, on the boot processor first, with interrupts off.
    pub(crate) unsafe fn install(place: *mut Tables) {
        // SAFETY: the place has no other user; an all-zero `Stack` is valid, and the other two fields are written.
        let tables: &'static mut Tables = unsafe {
            (&raw mut (*place).descriptors).write(GlobalDescriptorTable::new());
            (&raw mut (*place).task).write(TaskStateSegment::new());
            &mut *place
        };
        for (number, stack) in tables.stacks.iter().enumerate() {
            // Element by element: the task state is packed.
            tables.task.interrupt_stack_table[number] = VirtAddr::from_ptr(stack.0.as_ptr_range().end);
        }
        let code = tables.descriptors.append(Descriptor::kernel_code_segment());
        let data = tables.descriptors.append(Descriptor::kernel_data_segment());
        let user_data = tables.descriptors.append(Descriptor::user_data_segment());
        let user_code = tables.descriptors.append(Descriptor::user_code_segment());
        // `crossing` states them, and SYSRET wants them in this order.
        let expected = [KERNEL_CODE, KERNEL_DATA, USER_DATA, USER_CODE];
        assert!([code, data, user_data, user_code].map(|selector| selector.0) == expected, "descriptors out of order");
        let task = tables.descriptors.append(Descriptor::tss_segment(&tables.task));
        let domain_code = tables.descriptors.append(Descriptor::kernel_code_segment());
        assert!(domain_code.0 == DOMAIN_CODE, "descriptors out of order");
        tables.descriptors.load();
        // SAFETY: the selectors are of descriptors just made, of the kinds that the registers require.
        unsafe {
            CS::set_reg(code);
            SS::set_reg(data);
            DS::set_reg(data);
            ES::set_reg(data);
            load_tss(task);
        }
        if !FILLED.swap(true, Ordering::AcqRel) {
            // SAFETY: only the boot processor comes here, before any other runs.
            fill(unsafe { &mut *INTERRUPTS.0.get() });
        }
        // SAFETY: filled, and never written again.
        unsafe { (*INTERRUPTS.0.get()).load() };
    }
}

fn stack_of(vector: u8) -> u16 {
    match vector {
        14 => STACK_PAGE_FAULT,
        8 => STACK_DOUBLE,
        2 | 18 => STACK_UNMASKED,
        0..32 => STACK_EXCEPTION,
        _ => STACK_INTERRUPT,
    }
}

fn fill(table: &mut InterruptDescriptorTable) {
    macro_rules! set {
        ($vector:expr, $entry:expr) => {
            // SAFETY: the address is that of the stub for this vector, which expects the processor's
            // frame for it; the stack's index is one of the task state's.
            unsafe {
                $entry
                    .set_handler_addr(VirtAddr::new(interrupts::stub($vector) as u64))
                    .set_stack_index(stack_of($vector));
            }
        };
    }
    set!(0, table.divide_error);
    set!(1, table.debug);
    set!(2, table.non_maskable_interrupt);
    set!(3, table.breakpoint);
    set!(4, table.overflow);
    set!(5, table.bound_range_exceeded);
    set!(6, table.invalid_opcode);
    set!(7, table.device_not_available);
    set!(8, table.double_fault);
    set!(10, table.invalid_tss);
    set!(11, table.segment_not_present);
    set!(12, table.stack_segment_fault);
    set!(13, table.general_protection_fault);
    set!(14, table.page_fault);
    set!(16, table.x87_floating_point);
    set!(17, table.alignment_check);
    set!(18, table.machine_check);
    set!(19, table.simd_floating_point);
    for vector in 32..=255 {
        set!(vector, table[vector]);
    }
}
