//! Domains of the test machine: a record of what is mapped in each, and threads that leave them as a test has scripted.

use super::std::collections::{BTreeMap, BTreeSet, VecDeque};
use super::std::sync::{Mutex, MutexGuard, PoisonError};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use abi::limits::PAGE_BYTES;
use hal_api::{DomainAccess, DomainContext, DomainExit, DomainId, MapError};

/// Maximum domains at once.
pub const MAX: u32 = 16;
/// Address of the first gate.
pub const GATES: usize = 0x7000_0000;

/// Whether there is memory for page tables; tests clear it.
pub static HAS_FRAMES: AtomicBool = AtomicBool::new(true);
/// Whether windows are cleared where they are.
pub static CLEARS_WINDOWS: AtomicBool = AtomicBool::new(false);
/// Number of times that pages were mapped in a window, and that a window was released.
pub static MAPPED_WINDOWS: AtomicUsize = AtomicUsize::new(0);
pub static RELEASED: AtomicUsize = AtomicUsize::new(0);

/// What a thread does each time it runs in a domain.
type Step = Box<dyn FnMut(&mut DomainContext) -> DomainExit + Send>;

#[derive(Default)]
struct Domains {
    mapped: BTreeMap<u32, BTreeMap<usize, DomainAccess>>,
    steps: BTreeMap<u32, VecDeque<Step>>,
}

fn domains() -> MutexGuard<'static, Domains> {
    static DOMAINS: Mutex<Domains> = Mutex::new(Domains { mapped: BTreeMap::new(), steps: BTreeMap::new() });
    DOMAINS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn create() -> Option<DomainId> {
    let mut domains = domains();
    let free = (0..MAX).find(|number| !domains.mapped.contains_key(number));
    let number = free.filter(|_| HAS_FRAMES.load(Ordering::Relaxed))?;
    domains.mapped.insert(number, BTreeMap::new());
    Some(DomainId(number))
}

pub fn destroy(domain: DomainId) {
    let mut domains = domains();
    domains.steps.remove(&domain.0);
    assert!(domains.mapped.remove(&domain.0).is_some(), "a domain is destroyed twice");
}

fn pages(address: usize, bytes: usize) -> impl Iterator<Item = usize> {
    assert!(address.is_multiple_of(PAGE_BYTES) && bytes.is_multiple_of(PAGE_BYTES), "half a page is mapped");
    (address..address + bytes).step_by(PAGE_BYTES)
}

pub fn map(domain: DomainId, address: usize, bytes: usize, access: DomainAccess) -> Result<(), MapError> {
    let mut domains = domains();
    let mapped = domains.mapped.get_mut(&domain.0).expect("a domain");
    if !HAS_FRAMES.load(Ordering::Relaxed) {
        return Err(MapError);
    }
    for page in pages(address, bytes) {
        assert!(mapped.insert(page, access).is_none(), "a page is mapped twice");
    }
    Ok(())
}

pub fn map_stack(domain: DomainId, address: usize) -> Result<(), MapError> {
    let page = address & !(PAGE_BYTES - 1);
    domains().mapped.get_mut(&domain.0).expect("a domain").insert(page, DomainAccess::Write);
    Ok(())
}

pub fn unmap(domain: DomainId, address: usize, bytes: usize) {
    let mut domains = domains();
    let mapped = domains.mapped.get_mut(&domain.0).expect("a domain");
    for page in pages(address, bytes) {
        mapped.remove(&page);
    }
}

/// Number of domains.
pub fn count() -> usize {
    domains().mapped.len()
}

/// The domains in which the page at an address is mapped.
pub fn reached_from(address: usize) -> BTreeSet<u32> {
    let page = address & !(PAGE_BYTES - 1);
    domains().mapped.iter().filter(|(_, mapped)| mapped.contains_key(&page)).map(|(&number, _)| number).collect()
}

/// Number of pages mapped in all domains.
pub fn mapped_pages() -> usize {
    domains().mapped.values().map(BTreeMap::len).sum()
}

/// Adds what the next thread does that runs in a domain, once.
pub fn script(domain: u32, step: impl FnMut(&mut DomainContext) -> DomainExit + Send + 'static) {
    domains().steps.entry(domain).or_default().push_back(Box::new(step));
}

pub fn enter(domain: DomainId, context: &mut DomainContext) -> DomainExit {
    let step = domains().steps.get_mut(&domain.0).and_then(VecDeque::pop_front);
    step.expect("the thread has something to do in its domain")(context)
}
