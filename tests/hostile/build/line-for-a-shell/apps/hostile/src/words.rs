#!/bin/words /*
core::arch::global_asm!("nop");
// */
