//! Emitters: checked contracts to Rust, diagrams and models. Emitters cannot fail.

mod c;
mod c_abi;
mod layout;
mod needed;
mod promela;
mod rust;
mod rust_types;
mod svg;

pub use c::{emit_c, emit_c_guest, name as c_name};
pub use c_abi::emit_c_abi;
pub use promela::{Carrier, Deed, Event, SystemChannel, emit_promela, emit_promela_system, has_calls, waits_alone};
pub use rust::{emit_rust, emit_rust_guest};
pub use svg::emit_svg;

use abi::Direction;

use crate::naming;

/// One of the two ends of a channel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Importer,
    Exporter,
}

impl Side {
    const BOTH: [Side; 2] = [Side::Importer, Side::Exporter];

    /// In the names of Rust types.
    fn rust_name(self) -> &'static str {
        match self {
            Side::Importer => "Imp",
            Side::Exporter => "Exp",
        }
    }

    /// In the names of C types and functions.
    fn c_name(self) -> &'static str {
        match self {
            Side::Importer => "imp",
            Side::Exporter => "exp",
        }
    }

    fn long(self) -> &'static str {
        match self {
            Side::Importer => "importing",
            Side::Exporter => "exporting",
        }
    }

    fn sends(self) -> Direction {
        match self {
            Side::Importer => Direction::ToExporter,
            Side::Exporter => Direction::ToImporter,
        }
    }
}

/// The module name that [`emit_rust`] generates for a contract: `nic_device` for `NicDevice`.
pub fn rust_module_name(contract: &str) -> String {
    naming::snake(contract)
}

/// The type name that [`emit_rust`] generates for a named state.
pub fn rust_state_name(state: &str) -> String {
    naming::camel(state)
}
