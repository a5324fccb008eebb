//! The ABI functions: handles in a map, one lock, one condition variable for all waiters.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use std::vec::Vec;

use abi::{AbiReturn, AbiTable, Status};

use super::stack::{block, run_on};

/// Tags of the messages whose blocks are lent.
pub const LENT_TAGS: &[u64] = &[1];

/// The pseudo-member for an alert in a wait set, and its key.
const ALERT: u64 = u64::MAX;

enum Object {
    Endpoint { channel: u64, side: usize },
    Set(HashMap<u64, u64>),
    Event { set: bool, auto: bool },
    Thread { ended: bool },
}

struct Block {
    address: u64,
    bytes: u64,
    type_tag: u64,
    attached: Vec<u64>,
    owned: bool,
}

#[derive(Default)]
struct Channel {
    contract: u64,
    closed: [bool; 2],
    queues: [VecDeque<(u64, Vec<u64>)>; 2],
    lent_by: [Vec<u64>; 2],
}

#[derive(Default)]
struct State {
    next: u64,
    objects: HashMap<u64, Object>,
    blocks: HashMap<u64, Block>,
    channels: HashMap<u64, Channel>,
    parameters: HashMap<u64, Vec<u8>>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

fn locked<T>(change: impl FnOnce(&mut State) -> T) -> T {
    let mut guard = STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let result = change(guard.get_or_insert_with(State::default));
    CHANGED.notify_all();
    result
}

/// Retries until the attempt returns an answer or the deadline passes.
fn wait(deadline: u64, mut attempt: impl FnMut(&mut State) -> Option<AbiReturn>) -> AbiReturn {
    let mut guard: MutexGuard<'_, Option<State>> = STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    loop {
        if let Some(answer) = attempt(guard.get_or_insert_with(State::default)) {
            CHANGED.notify_all();
            return answer;
        }
        if time_monotonic().value >= deadline {
            return AbiReturn::err(Status::TimedOut);
        }
        guard = CHANGED.wait_timeout(guard, Duration::from_millis(5)).unwrap().0;
    }
}

pub fn blocks_alive() -> usize {
    locked(|state| state.blocks.len())
}

/// Frees the blocks owned by a program that was ended in the middle of a message. Queued blocks stay.
pub fn free_lost_blocks() {
    locked(|state| {
        let owned: Vec<u64> = state.blocks.iter().filter(|(_, block)| block.owned).map(|(&handle, _)| handle).collect();
        for handle in owned {
            state.free_block(handle);
        }
    });
}

pub fn endpoints_alive() -> usize {
    locked(|state| state.objects.values().filter(|object| matches!(object, Object::Endpoint { .. })).count())
}

pub fn give_parameter(index: u64, value: &[u8]) {
    locked(|state| state.parameters.insert(index, value.to_vec()));
}

fn word(index: usize) -> u64 {
    // SAFETY: the calling thread runs on a slot of `run_on`.
    unsafe { (*block()).message[index] }
}

fn set_word(index: usize, value: u64) {
    // SAFETY: as in `word`.
    unsafe { (*block()).message[index] = value }
}

impl State {
    fn handle(&mut self) -> u64 {
        self.next += 1;
        0x100 + self.next
    }

    fn add(&mut self, object: Object) -> u64 {
        let handle = self.handle();
        self.objects.insert(handle, object);
        handle
    }

    fn endpoint(&self, handle: u64) -> Option<(u64, usize)> {
        match self.objects.get(&handle) {
            Some(&Object::Endpoint { channel, side }) => Some((channel, side)),
            _ => None,
        }
    }

    fn is_ready(&self, handle: u64) -> bool {
        match self.objects.get(&handle) {
            _ if handle == ALERT => true,
            Some(&Object::Endpoint { channel, side }) => {
                let channel = &self.channels[&channel];
                !channel.queues[side].is_empty() || channel.closed[1 - side]
            }
            Some(Object::Set(members)) => members.keys().any(|&member| self.is_ready(member)),
            Some(Object::Event { set, .. }) => *set,
            Some(Object::Thread { ended }) => *ended,
            None => false,
        }
    }

    fn free_block(&mut self, handle: u64) -> bool {
        let Some(freed) = self.blocks.remove(&handle) else { return false };
        for child in freed.attached {
            self.free_block(child);
        }
        true
    }

    fn try_receive(&mut self, handle: u64) -> Option<AbiReturn> {
        let Some((channel, side)) = self.endpoint(handle) else { return Some(AbiReturn::err(Status::BadHandle)) };
        let channel = self.channels.get_mut(&channel)?;
        if let Some((message, words)) = channel.queues[side].pop_front() {
            let scalars = (message >> 16) as u16 as usize;
            let blocks = (message >> 32) as u8 as usize;
            for (index, &value) in words.iter().enumerate() {
                set_word(index, value);
            }
            for index in 0..blocks {
                let place = scalars + 3 * index;
                let entry = self.blocks.get_mut(&words[place])?;
                entry.owned = true;
                set_word(place + 1, entry.address);
                set_word(place + 2, entry.bytes);
            }
            return Some(AbiReturn::ok(message));
        }
        if !channel.closed[1 - side] {
            return None;
        }
        let home: Vec<u64> = channel.lent_by[side].drain(..).collect();
        set_word(0, home.len() as u64);
        for (index, handle) in home.into_iter().enumerate() {
            let entry = self.blocks.get_mut(&handle)?;
            entry.owned = true;
            set_word(1 + 3 * index, handle);
            set_word(2 + 3 * index, entry.address);
            set_word(3 + 3 * index, entry.bytes);
        }
        Some(AbiReturn::err(Status::Closed))
    }
}

extern "C" fn channel_create(contract: u64) -> AbiReturn {
    locked(|state| {
        let channel = state.handle();
        state.channels.insert(channel, Channel { contract, ..Channel::default() });
        let importer = state.add(Object::Endpoint { channel, side: 0 });
        set_word(0, state.add(Object::Endpoint { channel, side: 1 }));
        AbiReturn::ok(importer)
    })
}

extern "C" fn channel_send(endpoint: u64, message: u64) -> AbiReturn {
    locked(|state| {
        let Some((channel, side)) = state.endpoint(endpoint) else { return AbiReturn::err(Status::BadHandle) };
        let (scalars, blocks) = ((message >> 16) as u16 as usize, (message >> 32) as u8 as usize);
        let endpoints = (message >> 40) as u8 as usize;
        let words: Vec<u64> = (0..scalars + 3 * blocks + endpoints).map(word).collect();
        for index in 0..blocks {
            let handle = words[scalars + 3 * index];
            match state.blocks.get_mut(&handle) {
                Some(entry) if entry.owned => entry.owned = false,
                _ => return AbiReturn::err(Status::BadHandle),
            }
        }
        let Some(channel) = state.channels.get_mut(&channel) else { return AbiReturn::err(Status::BadHandle) };
        if LENT_TAGS.contains(&(message & 0xffff)) {
            channel.lent_by[side].extend((0..blocks).map(|index| words[scalars + 3 * index]));
        } else {
            channel.lent_by[1 - side].retain(|handle| !words.contains(handle));
        }
        channel.queues[1 - side].push_back((message, words));
        AbiReturn::ok(0)
    })
}

extern "C" fn channel_receive(endpoint: u64, deadline: u64) -> AbiReturn {
    wait(deadline, |state| state.try_receive(endpoint))
}

extern "C" fn channel_try_receive(endpoint: u64) -> AbiReturn {
    locked(|state| state.try_receive(endpoint).unwrap_or(AbiReturn::err(Status::WouldBlock)))
}

extern "C" fn channel_receive_or_add(endpoint: u64, set: u64, key: u64) -> AbiReturn {
    match channel_try_receive(endpoint) {
        answer if answer.status == Status::WouldBlock as u64 => match wait_set_add(set, endpoint, key) {
            added if added.status == Status::Ok as u64 => answer,
            refused => refused,
        },
        answer => answer,
    }
}

extern "C" fn channel_close(endpoint: u64) -> AbiReturn {
    locked(|state| {
        let Some((channel, side)) = state.endpoint(endpoint) else { return AbiReturn::err(Status::BadHandle) };
        state.objects.remove(&endpoint);
        for object in state.objects.values_mut() {
            if let Object::Set(members) = object {
                members.remove(&endpoint);
            }
        }
        if let Some(channel) = state.channels.get_mut(&channel) {
            channel.closed[side] = true;
        }
        AbiReturn::ok(0)
    })
}

extern "C" fn channel_describe(endpoint: u64) -> AbiReturn {
    locked(|state| {
        let Some((channel, side)) = state.endpoint(endpoint) else { return AbiReturn::err(Status::BadHandle) };
        set_word(0, state.channels[&channel].contract);
        set_word(1, u64::from(side == 0));
        set_word(2, 0);
        AbiReturn::ok(0)
    })
}

extern "C" fn wait_set_create() -> AbiReturn {
    locked(|state| AbiReturn::ok(state.add(Object::Set(HashMap::new()))))
}

extern "C" fn wait_set_add(set: u64, endpoint: u64, key: u64) -> AbiReturn {
    locked(|state| match state.objects.get_mut(&set) {
        Some(Object::Set(members)) => match members.insert(endpoint, key) {
            None => AbiReturn::ok(0),
            Some(_) => AbiReturn::err(Status::Busy),
        },
        _ => AbiReturn::err(Status::BadHandle),
    })
}

extern "C" fn wait_set_remove(set: u64, endpoint: u64) -> AbiReturn {
    locked(|state| match state.objects.get_mut(&set) {
        Some(Object::Set(members)) => match members.remove(&endpoint) {
            Some(_) => AbiReturn::ok(0),
            None => AbiReturn::err(Status::NotFound),
        },
        _ => AbiReturn::err(Status::BadHandle),
    })
}

extern "C" fn wait_set_wait(set: u64, deadline: u64, max: u64, clock: u64) -> AbiReturn {
    wait(deadline, |state| {
        let Some(Object::Set(members)) = state.objects.get(&set) else {
            return Some(AbiReturn::err(Status::BadHandle));
        };
        let ready: Vec<u64> = members.keys().copied().filter(|&member| state.is_ready(member)).collect();
        let Some(Object::Set(members)) = state.objects.get_mut(&set) else { return None };
        let mut words: Vec<u64> = ready.iter().take(max as usize).filter_map(|ready| members.remove(ready)).collect();
        if words.is_empty() {
            return None;
        }
        if clock == 1 {
            words.push(time_monotonic().value);
        }
        words.iter().enumerate().for_each(|(index, &word)| set_word(index, word));
        Some(AbiReturn::ok(words.len() as u64))
    })
}

extern "C" fn wait_set_alert(set: u64) -> AbiReturn {
    locked(|state| match state.objects.get_mut(&set) {
        Some(Object::Set(members)) => {
            members.insert(ALERT, ALERT);
            AbiReturn::ok(0)
        }
        _ => AbiReturn::err(Status::BadHandle),
    })
}

extern "C" fn close_object(handle: u64) -> AbiReturn {
    locked(|state| match state.objects.remove(&handle) {
        Some(_) => AbiReturn::ok(0),
        None => AbiReturn::err(Status::BadHandle),
    })
}

extern "C" fn wait_any(count: u64, deadline: u64) -> AbiReturn {
    let handles: Vec<u64> = (0..count as usize).map(word).collect();
    wait(deadline, |state| {
        let index = handles.iter().position(|&handle| state.is_ready(handle))?;
        if let Some(Object::Event { set, auto: true }) = state.objects.get_mut(&handles[index]) {
            *set = false;
        }
        Some(AbiReturn::ok(index as u64))
    })
}

extern "C" fn heap_allocate(bytes: u64, type_tag: u64) -> AbiReturn {
    let layout = Layout::from_size_align((bytes as usize).max(64), 64).unwrap();
    // SAFETY: the size is not zero. Blocks are leaked, so that a use after free reads zeroes.
    let address = unsafe { alloc_zeroed(layout) } as u64;
    set_word(0, address);
    locked(|state| {
        let handle = state.handle();
        state.blocks.insert(handle, Block { address, bytes, type_tag, attached: Vec::new(), owned: true });
        AbiReturn::ok(handle)
    })
}

extern "C" fn heap_free(handle: u64) -> AbiReturn {
    locked(|state| {
        if !state.blocks.get(&handle).is_some_and(|entry| entry.owned) {
            return AbiReturn::err(Status::BadHandle);
        }
        state.free_block(handle);
        AbiReturn::ok(0)
    })
}

extern "C" fn heap_split(handle: u64, offset: u64) -> AbiReturn {
    locked(|state| {
        let Some(entry) = state.blocks.get_mut(&handle) else { return AbiReturn::err(Status::BadHandle) };
        let rest = Block {
            address: entry.address + offset,
            bytes: entry.bytes - offset,
            type_tag: entry.type_tag,
            attached: Vec::new(),
            owned: true,
        };
        entry.bytes = offset;
        let handle = state.handle();
        state.blocks.insert(handle, rest);
        AbiReturn::ok(handle)
    })
}

extern "C" fn heap_describe(handle: u64) -> AbiReturn {
    locked(|state| {
        let Some(entry) = state.blocks.get(&handle) else { return AbiReturn::err(Status::BadHandle) };
        let lent = state.channels.values().any(|channel| channel.lent_by.iter().any(|list| list.contains(&handle)));
        for (index, value) in [entry.address, entry.bytes, entry.type_tag, u64::from(lent)].into_iter().enumerate() {
            set_word(index, value);
        }
        AbiReturn::ok(0)
    })
}

extern "C" fn heap_attach(parent: u64, child: u64) -> AbiReturn {
    locked(|state| {
        if let Some(entry) = state.blocks.get_mut(&child) {
            entry.owned = false;
        }
        let Some(entry) = state.blocks.get_mut(&parent) else { return AbiReturn::err(Status::BadHandle) };
        entry.attached.push(child);
        AbiReturn::ok(entry.attached.len() as u64 - 1)
    })
}

extern "C" fn heap_detach(parent: u64) -> AbiReturn {
    locked(|state| {
        let Some(child) = state.blocks.get_mut(&parent).and_then(|entry| entry.attached.pop()) else {
            return AbiReturn::err(Status::NotFound);
        };
        let Some(entry) = state.blocks.get_mut(&child) else { return AbiReturn::err(Status::BadHandle) };
        entry.owned = true;
        set_word(0, entry.address);
        set_word(1, entry.bytes);
        set_word(2, entry.type_tag);
        AbiReturn::ok(child)
    })
}

static PAGES: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

pub fn pages_alive() -> u64 {
    PAGES.load(std::sync::atomic::Ordering::SeqCst)
}

fn pages_layout(pages: u64) -> Layout {
    Layout::from_size_align(pages as usize * 4096 + 4096, 4096).unwrap()
}

/// The length in pages is stored in an extra page before the allocation.
extern "C" fn memory_allocate(pages: u64) -> AbiReturn {
    // SAFETY: the size is not zero, and the first page is the double's own.
    unsafe {
        let base = alloc_zeroed(pages_layout(pages));
        base.cast::<u64>().write(pages);
        PAGES.fetch_add(pages, std::sync::atomic::Ordering::SeqCst);
        AbiReturn::ok(base as u64 + 4096)
    }
}

extern "C" fn memory_free(address: u64) -> AbiReturn {
    // SAFETY: the address came from `memory_allocate`.
    unsafe {
        let base = (address - 4096) as *mut u8;
        let pages = base.cast::<u64>().read();
        dealloc(base, pages_layout(pages));
        PAGES.fetch_sub(pages, std::sync::atomic::Ordering::SeqCst);
        AbiReturn::ok(pages)
    }
}

extern "C" fn parameter_length(index: u64) -> AbiReturn {
    locked(|state| AbiReturn::ok(state.parameters.get(&index).map_or(u64::MAX, |value| value.len() as u64)))
}

extern "C" fn parameter_read(index: u64, offset: u64) -> AbiReturn {
    locked(|state| {
        let value = &state.parameters[&index][offset as usize..];
        let length = value.len().min(512);
        // SAFETY: the buffer has 512 bytes.
        unsafe { (*block()).message.as_mut_ptr().cast::<u8>().copy_from(value.as_ptr(), length) };
        AbiReturn::ok(length as u64)
    })
}

extern "C" fn endpoint_take(_: u64) -> AbiReturn {
    AbiReturn::err(Status::NotFound)
}

extern "C" fn thread_create(entry: u64, argument: u64) -> AbiReturn {
    let thread = locked(|state| state.add(Object::Thread { ended: false }));
    std::thread::spawn(move || {
        run_on(table(), || {
            // SAFETY: the runtime passes the address of a function of this type.
            let entry: extern "C" fn(u64) -> u64 = unsafe { std::mem::transmute(entry as usize) };
            entry(argument)
        })
    });
    AbiReturn::ok(thread)
}

extern "C" fn thread_exit() -> AbiReturn {
    // The double cannot determine the thread's own handle; each test has one such thread.
    locked(|state| {
        for object in state.objects.values_mut() {
            if let Object::Thread { ended } = object {
                *ended = true;
            }
        }
    });
    loop {
        std::thread::park();
    }
}

extern "C" fn thread_join(thread: u64, deadline: u64) -> AbiReturn {
    wait(deadline, |state| {
        let ended = state.is_ready(thread);
        ended.then(|| {
            state.objects.remove(&thread);
            AbiReturn::ok(0)
        })
    })
}

extern "C" fn thread_yield() -> AbiReturn {
    std::thread::yield_now();
    AbiReturn::ok(0)
}

extern "C" fn time_monotonic() -> AbiReturn {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    AbiReturn::ok(1 + START.get_or_init(Instant::now).elapsed().as_nanos() as u64)
}

extern "C" fn event_create_manual() -> AbiReturn {
    locked(|state| AbiReturn::ok(state.add(Object::Event { set: false, auto: false })))
}

extern "C" fn event_create_auto() -> AbiReturn {
    locked(|state| AbiReturn::ok(state.add(Object::Event { set: false, auto: true })))
}

extern "C" fn event_set(event: u64) -> AbiReturn {
    locked(|state| {
        if let Some(Object::Event { set, .. }) = state.objects.get_mut(&event) {
            *set = true;
        }
        AbiReturn::ok(0)
    })
}

extern "C" fn event_wait(event: u64, deadline: u64) -> AbiReturn {
    wait(deadline, |state| match state.objects.get_mut(&event) {
        Some(Object::Event { set, auto }) if *set => {
            *set = !*auto;
            Some(AbiReturn::ok(0))
        }
        Some(_) => None,
        None => Some(AbiReturn::err(Status::BadHandle)),
    })
}

macro_rules! unsupported {
    ($(group $group:literal { $(#[doc = $doc:literal] fn $name:ident($($argument:ident),*) -> $value:literal;)* })*) => {
        AbiTable {
            id: abi::TABLE_ID,
            $($($name: {
                extern "C" fn refuse($(_: swallow!($argument)),*) -> AbiReturn {
                    AbiReturn::err(Status::Unknown)
                }
                refuse
            },)*)*
        }
    };
}

macro_rules! swallow {
    ($argument:ident) => {
        u64
    };
}

pub(super) fn table() -> &'static AbiTable {
    static TABLE: AbiTable = AbiTable {
        channel_create,
        channel_send,
        channel_receive,
        channel_try_receive,
        channel_receive_or_add,
        channel_close,
        channel_describe,
        wait_set_create,
        wait_set_add,
        wait_set_remove,
        wait_set_wait,
        wait_set_alert,
        wait_set_close: close_object,
        wait_any,
        heap_allocate,
        heap_free,
        heap_split,
        heap_describe,
        heap_attach,
        heap_detach,
        memory_allocate,
        memory_free,
        parameter_length,
        parameter_read,
        endpoint_take,
        thread_create,
        thread_exit,
        thread_join,
        thread_yield,
        time_monotonic,
        event_create_manual,
        event_create_auto,
        event_set,
        event_wait,
        event_close: close_object,
        ..abi::for_each_function!(unsupported)
    };
    &TABLE
}
