//! Checked contracts to text: Rust, diagrams, models. Nothing here can fail.

mod layout;
mod promela;
mod rust;
mod rust_types;
mod svg;

pub use promela::{SystemChannel, emit_promela, emit_promela_system};
pub use rust::emit_rust;
pub use svg::emit_svg;

use crate::naming;

/// The name of the module that [`emit_rust`] makes for a contract: `nic_device` for `NicDevice`.
pub fn rust_module_name(contract: &str) -> String {
    naming::snake(contract)
}

/// The name of the type that [`emit_rust`] makes for a state with a name of its own.
pub fn rust_state_name(state: &str) -> String {
    naming::camel(state)
}
