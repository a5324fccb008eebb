//! What the bindings of one contract need of its unit.

use std::collections::BTreeSet;

use crate::unit::{ArgumentKind, TypeKind, Unit, Value, ValueType};

/// Contracts and types, by their index in the unit.
#[derive(Default)]
pub struct Needed {
    /// The contract, and those of endpoints in messages.
    pub contracts: BTreeSet<usize>,
    /// Types of their arguments and blocks, and of fields of those.
    pub types: BTreeSet<usize>,
}

impl Needed {
    /// What the contract with this index needs.
    pub fn by(unit: &Unit, contract: usize) -> Needed {
        let mut needed = Needed::default();
        needed.contract(unit, contract);
        needed
    }

    fn contract(&mut self, unit: &Unit, index: usize) {
        let Some(contract) = unit.contracts.get(index).filter(|_| self.contracts.insert(index)) else { return };
        contract.types.iter().for_each(|index| self.declared(unit, *index));
        for argument in contract.messages.iter().flat_map(|message| &message.arguments) {
            match &argument.kind {
                ArgumentKind::Inline(value) | ArgumentKind::Block { element: value, .. } => self.value(unit, value),
                ArgumentKind::Endpoint { contract, .. } => self.contract(unit, *contract),
                ArgumentKind::Any { .. } => {}
            }
        }
    }

    fn value(&mut self, unit: &Unit, value: &Value) {
        if let ValueType::Declared(index) = value.of {
            self.declared(unit, index);
        }
    }

    fn declared(&mut self, unit: &Unit, index: usize) {
        let Some(declared) = unit.types.get(index).filter(|_| self.types.insert(index)) else { return };
        if let Some(owner) = declared.contract {
            // The type's path leads through the module of the contract that declares it.
            self.contract(unit, owner);
        }
        if let TypeKind::Struct(fields) = &declared.kind {
            fields.iter().for_each(|field| self.value(unit, &field.value));
        }
    }
}
