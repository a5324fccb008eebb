//! The calls of preview 1, and those of this system, about contracts and locks: one table of names and types makes the list
//! that modules are checked by, and the dispatch.

mod clocks;
mod contracts;
mod descriptors;
mod files;
mod locks;
mod paths;
mod poll;
mod process;
mod sockets;
mod stat;

use sip_wasm::Caller;

use crate::abi::Errno;
use crate::guest::Guest;
use crate::host::Wasi;

/// A call. Its result is an error number, unless it does not return.
type Call = fn(&mut Wasi, &mut Caller<'_>) -> Result<(), Errno>;

/// A call that preview 1 does not have; returns its result.
type OwnCall = fn(&mut Wasi, &mut Caller<'_>) -> u64;

/// Declares the calls: file, name and types of the arguments of each; those of WASI, and this system's own.
macro_rules! calls {
    (
        wasi_snapshot_preview1 { $($file:ident $name:ident($($kind:ident)*) $(-> $result:ident)?;)* }
        sing { $($own_file:ident $own_name:ident($($own_kind:ident)*) -> $own_result:ident;)* }
    ) => {
        /// What modules can import.
        pub const IMPORTS: &str = concat!(
            $(
                "func wasi_snapshot_preview1 ", stringify!($name),
                $(" ", stringify!($kind),)* $(" -> ", stringify!($result),)? "\n",
            )*
            $(
                "func sing ", stringify!($own_name),
                $(" ", stringify!($own_kind),)* " -> ", stringify!($own_result), "\n",
            )*
        );

        /// The calls of WASI in the order of [`IMPORTS`].
        const CALLS: &[Call] = &[$($file::$name),*];

        /// This system's own, which follow.
        const OWN_CALLS: &[OwnCall] = &[$($own_file::$own_name),*];
    };
}

calls! {
    wasi_snapshot_preview1 {
        process args_get(i32 i32) -> i32;
        process args_sizes_get(i32 i32) -> i32;
        process environ_get(i32 i32) -> i32;
        process environ_sizes_get(i32 i32) -> i32;
        process proc_exit(i32);
        process proc_raise(i32) -> i32;
        process sched_yield() -> i32;
        process random_get(i32 i32) -> i32;
        clocks clock_res_get(i32 i32) -> i32;
        clocks clock_time_get(i32 i64 i32) -> i32;
        poll poll_oneoff(i32 i32 i32 i32) -> i32;
        descriptors fd_close(i32) -> i32;
        descriptors fd_fdstat_get(i32 i32) -> i32;
        descriptors fd_fdstat_set_flags(i32 i32) -> i32;
        descriptors fd_fdstat_set_rights(i32 i64 i64) -> i32;
        descriptors fd_prestat_get(i32 i32) -> i32;
        descriptors fd_prestat_dir_name(i32 i32 i32) -> i32;
        descriptors fd_renumber(i32 i32) -> i32;
        descriptors fd_readdir(i32 i32 i32 i64 i32) -> i32;
        files fd_advise(i32 i64 i64 i32) -> i32;
        files fd_allocate(i32 i64 i64) -> i32;
        files fd_datasync(i32) -> i32;
        files fd_sync(i32) -> i32;
        files fd_pread(i32 i32 i32 i64 i32) -> i32;
        files fd_pwrite(i32 i32 i32 i64 i32) -> i32;
        files fd_read(i32 i32 i32 i32) -> i32;
        files fd_write(i32 i32 i32 i32) -> i32;
        files fd_seek(i32 i64 i32 i32) -> i32;
        files fd_tell(i32 i32) -> i32;
        stat fd_filestat_get(i32 i32) -> i32;
        stat fd_filestat_set_size(i32 i64) -> i32;
        stat fd_filestat_set_times(i32 i64 i64 i32) -> i32;
        stat path_filestat_get(i32 i32 i32 i32 i32) -> i32;
        stat path_filestat_set_times(i32 i32 i32 i32 i64 i64 i32) -> i32;
        paths path_create_directory(i32 i32 i32) -> i32;
        paths path_link(i32 i32 i32 i32 i32 i32 i32) -> i32;
        paths path_open(i32 i32 i32 i32 i32 i64 i64 i32 i32) -> i32;
        paths path_readlink(i32 i32 i32 i32 i32 i32) -> i32;
        paths path_remove_directory(i32 i32 i32) -> i32;
        paths path_rename(i32 i32 i32 i32 i32 i32) -> i32;
        paths path_symlink(i32 i32 i32 i32 i32) -> i32;
        paths path_unlink_file(i32 i32 i32) -> i32;
        sockets sock_accept(i32 i32 i32) -> i32;
        sockets sock_recv(i32 i32 i32 i32 i32 i32) -> i32;
        sockets sock_send(i32 i32 i32 i32 i32) -> i32;
        sockets sock_shutdown(i32 i32) -> i32;
    }
    sing {
        contracts endpoint(i32) -> i64;
        contracts open(i32 i32 i64 i32) -> i32;
        contracts channel(i64 i32) -> i32;
        contracts describe(i64 i32) -> i32;
        contracts send(i64 i32 i32 i32 i32 i32) -> i32;
        contracts receive(i64 i64 i32 i32) -> i32;
        contracts wait(i32 i32 i64) -> i32;
        contracts block(i64 i64) -> i64;
        contracts read(i64 i64 i32 i32) -> i32;
        contracts write(i64 i64 i32 i32) -> i32;
        contracts close(i64) -> i32;
        contracts time() -> i64;
        locks lock(i32 i32 i64 i64) -> i32;
        locks test_lock(i32 i32 i64 i64) -> i32;
    }
}

/// Performs the call with this number.
pub fn perform(host: &mut Wasi, number: usize, caller: &mut Caller<'_>) {
    if let Some(call) = number.checked_sub(CALLS.len()).and_then(|number| OWN_CALLS.get(number)) {
        let result = call(host, caller);
        caller.set_result(0, result.into());
        return;
    }
    let done = CALLS.get(number).map_or(Err(Errno::NOTSUP), |call| call(host, caller));
    caller.set_result(0, done.err().map_or(0, |errno| errno.0.into()));
}

/// Linear memory of the caller.
fn guest<'c>(caller: &'c mut Caller<'_>) -> Guest<'c> {
    Guest(caller.memory())
}
