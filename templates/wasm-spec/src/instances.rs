//! The instances of a file, and the calls between them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sip_wasm::{Caller, Host, Instance, Module, StartError, Trap};

use crate::script::Link;
use crate::spectest;

/// An instance, and the functions of others that it imports.
struct Linked {
    instance: Instance,
    links: Vec<Link>,
}

/// The instances of a file by number. One is missing while it is called, and where none was made.
#[derive(Default)]
pub(crate) struct Instances {
    all: Vec<Option<Linked>>,
}

/// What an instance's imports reach.
struct Others<'a> {
    instances: &'a mut Instances,
    links: &'a [Link],
}

impl Host for Others<'_> {
    fn call(&mut self, import: usize, caller: &mut Caller<'_>) -> Result<(), Trap> {
        let Some(link) = import.checked_sub(spectest::COUNT) else { return Ok(()) };
        let link = self.links.get(link).ok_or_else(|| Trap(String::from("an import that there is not")))?;
        let parameters = self.instances.parameters(*link);
        let arguments: Vec<u128> = (0..parameters).map(|index| caller.bits(index)).collect();
        let results = self.instances.call(link.instance, link.function, &arguments).map_err(Trap)?;
        for (index, bits) in results.into_iter().enumerate() {
            caller.set_result(index, bits);
        }
        Ok(())
    }
}

impl Instances {
    /// Leaves out an instance.
    pub(crate) fn skip(&mut self) {
        self.all.push(None);
    }

    /// Makes an instance, and runs its start function.
    pub(crate) fn add(&mut self, module: Module, links: Vec<Link>) -> Result<(), StartError> {
        let mut instance = Instance::new(module)?;
        instance.start(&mut Others { instances: self, links: &links });
        self.all.push(Some(Linked { instance, links }));
        Ok(())
    }

    fn parameters(&self, link: Link) -> usize {
        let linked = self.all.get(link.instance as usize).and_then(Option::as_ref);
        let signature = linked.and_then(|linked| linked.instance.module().record().signature(link.function));
        signature.map_or(0, |signature| signature.parameters.len())
    }

    /// Calls a function of an instance.
    pub(crate) fn call(&mut self, number: u32, function: u32, arguments: &[u128]) -> Result<Vec<u128>, String> {
        let place = self.all.get_mut(number as usize);
        let linked = place.and_then(Option::take).ok_or_else(|| format!("there is no instance {number}"))?;
        let Linked { mut instance, links } = linked;
        let results = instance.call_function(function, arguments, &mut Others { instances: self, links: &links });
        self.all[number as usize] = Some(Linked { instance, links });
        results
    }

    /// The bits of a global.
    pub(crate) fn global(&self, number: u32, global: u32) -> Result<u128, String> {
        let linked = self.all.get(number as usize).and_then(Option::as_ref);
        let value = linked.and_then(|linked| linked.instance.global_at(global));
        value.ok_or_else(|| format!("there is no global {global} of instance {number}"))
    }
}
