//! Tests of the policy, on the test machine.

use super::*;
use crate::test_machine::{alone, domains};

#[test]
fn a_shared_domain_has_one_space_while_it_is_in_use() {
    let _alone = alone();
    let before = domains::count();
    let first = join_shared(1).expect("a space");
    let second = join_shared(1).expect("a space");
    assert!(core::ptr::eq(first, second));
    let other = join_shared(0).expect("a space");
    assert!(!core::ptr::eq(first, other));
    first.leave();
    assert_eq!(domains::count(), before + 2);
    second.leave();
    other.leave();
    assert_eq!(domains::count(), before);
    let again = join_shared(1).expect("a space");
    assert_eq!(again.members(), 1);
    again.leave();
    assert_eq!(domains::count(), before);
}

#[test]
fn there_are_as_many_spaces_as_the_machine_has_domains() {
    let _alone = alone();
    let free = domains::MAX as usize - domains::count();
    let spaces: Vec<SpaceRef> = (0..free).map(|_| space::create().expect("a space")).collect();
    assert_eq!(space::create().err(), Some(Status::Exhausted));
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
