//! Tests of the policy, on the test machine.

use super::*;
use core::sync::atomic::Ordering;

use abi::limits::PAGE_BYTES;

use crate::memory;
use crate::test_machine::{alone, domains, put_apart, with_quota};

#[test]
fn a_shared_domain_has_one_space_while_it_is_in_use() {
    let _alone = alone();
    let before = domains::count();
    let first = join_shared(1, DomainRing::Ring3).expect("a space");
    let second = join_shared(1, DomainRing::Ring3).expect("a space");
    assert!(core::ptr::eq(first, second));
    let other = join_shared(0, DomainRing::Ring3).expect("a space");
    assert!(!core::ptr::eq(first, other));
    first.leave();
    assert_eq!(domains::count(), before + 2);
    second.leave();
    other.leave();
    assert_eq!(domains::count(), before);
    let again = join_shared(1, DomainRing::Ring3).expect("a space");
    assert_eq!(again.members(), 1);
    again.leave();
    assert_eq!(domains::count(), before);
}

#[test]
fn there_are_as_many_spaces_as_the_machine_has_domains() {
    let _alone = alone();
    let free = domains::MAX as usize - domains::count();
    let spaces: Vec<SpaceRef> = (0..free).map(|_| space::create(DomainRing::Ring3, false).expect("a space")).collect();
    assert_eq!(space::create(DomainRing::Ring3, false).err(), Some(Status::Exhausted));
    spaces.into_iter().for_each(|space| space.leave());
}

#[test]
fn a_program_outside_all_domains_is_in_the_kernels_own() {
    let _alone = alone();
    let program = crate::test_machine::program("plain.test");
    let loaded = program.loaded.get().expect("loaded");
    assert!(join(program, loaded).is_ok_and(|space| space.is_none()));
    assert_eq!(check(&[]), Ok(()));
}

/// Bytes of the pages at an address.
fn contents(address: usize, pages: usize) -> &'static mut [u8] {
    // SAFETY: pages that a test has allocated, and uses by one slice at a time.
    unsafe { core::slice::from_raw_parts_mut(address as *mut u8, pages * PAGE_BYTES) }
}

#[test]
fn each_process_has_its_own_copy_of_data_of_its_image() {
    let _alone = alone();
    let before = (memory::usage(), domains::count());
    let image = memory::allocate_pages(2, None).expect("pages");
    contents(image, 2).fill(0x5a);
    let quota = manifest_model::Quota { memory_kib: 8, ..manifest_model::Quota::default() };
    let [first, second] = [0, 1].map(|_| with_quota(|quota| quota.memory_kib = 8));
    for process in [first, second] {
        put_apart(process);
        assert_eq!(process.copy_image_data(&[(image, 2 * PAGE_BYTES)], &quota), Ok(()));
    }
    let copy_of = |process: crate::process::ProcessRef| process.pages.lock().data[0].memory;
    let copies = [first, second].map(copy_of);
    assert!(copies[0] != copies[1] && !copies.contains(&image));
    contents(copies[0], 2).fill(1);
    assert!(contents(image, 2).iter().chain(contents(copies[1], 2).iter()).all(|&byte| byte == 0x5a));
    assert_eq!(domains::reached_from(image + PAGE_BYTES).len(), 2);
    assert!(domains::reached_from(copies[0]).is_empty(), "it is mapped at the image's address alone");
    assert_eq!((first.page_usage().0, first.allocate_pages(1)), (2, Err(Status::QuotaExceeded)));
    first.free_image_data();
    assert_eq!((first.page_usage().0, domains::reached_from(image).len()), (0, 1));
    assert!(contents(copies[1], 2).iter().all(|&byte| byte == 0x5a));
    second.free_image_data();
    // Too much, or without memory for tables: nothing is left behind.
    let segments = [(image, PAGE_BYTES), (image + PAGE_BYTES, PAGE_BYTES)];
    let small = manifest_model::Quota { memory_kib: 4, ..quota };
    assert_eq!(first.copy_image_data(&segments, &small), Err(Status::QuotaExceeded));
    domains::HAS_FRAMES.store(false, Ordering::Relaxed);
    assert_eq!(first.copy_image_data(&segments, &quota), Err(Status::Exhausted));
    domains::HAS_FRAMES.store(true, Ordering::Relaxed);
    assert_eq!((first.page_usage().0, domains::reached_from(image).len()), (0, 0));
    for process in [first, second] {
        process.space.take().expect("its space").leave();
    }
    memory::free_pages(image, 2, None);
    assert_eq!((memory::usage(), domains::count()), before);
}
