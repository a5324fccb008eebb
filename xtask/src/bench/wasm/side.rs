//! What is measured beside what.

/// A way to run a workload. Another way is a line in [`SIDES`], and where it runs in `compute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Natively: the kernels as a program of this system, programs in C on the host.
    Native,
    /// As WebAssembly here, as it is compiled by default: addresses behind memory instead of checks.
    Guarded,
    /// As WebAssembly here, with a check of each access to memory.
    Checks,
    /// In wasmtime, as it compiles by default: guard pages instead of checks.
    Wasmtime,
    /// In wasmtime with checks.
    WasmtimeChecks,
}

/// All sides, in the order of the table's columns.
pub const SIDES: [Side; 5] = [Side::Native, Side::Guarded, Side::Checks, Side::Wasmtime, Side::WasmtimeChecks];

impl Side {
    /// Its column.
    pub fn title(self) -> &'static str {
        match self {
            Side::Native => "native",
            Side::Guarded => "here",
            Side::Checks | Side::WasmtimeChecks => "with checks",
            Side::Wasmtime => "wasmtime",
        }
    }

    /// Its name in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Side::Native => "native",
            Side::Guarded => "here",
            Side::Checks => "here_checks",
            Side::Wasmtime => "wasmtime",
            Side::WasmtimeChecks => "wasmtime_checks",
        }
    }

    /// Whether wasmtime runs it.
    pub fn is_wasmtime(self) -> bool {
        matches!(self, Side::Wasmtime | Side::WasmtimeChecks)
    }
}
