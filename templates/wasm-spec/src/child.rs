//! What a process for one file does.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sip_wasm::Module;

use crate::instances::Instances;
use crate::script::{Act, End, Pattern, Step, Value};

/// Exit status of a process whose last step returned, and should not have.
pub(crate) const RETURNED: i32 = 3;

/// Does all steps that must return; or, with the number of one that must not, those before it that it depends on, and then
/// itself. Ends with a panic's epitaph where a step is not as it must be.
pub(crate) fn run(steps: &[Step], last: Option<usize>, module: Module) -> i32 {
    let mut instances = Instances::default();
    let needed = last.map(|last| needed(steps, last));
    let mut number = 0;
    for (index, step) in steps.iter().enumerate() {
        let is_last = last == Some(index);
        let instance = match &step.act {
            Act::Instantiate { .. } => number,
            Act::Call { instance, .. } | Act::Global { instance, .. } => *instance,
        };
        number += u32::from(matches!(step.act, Act::Instantiate { .. }));
        let is_needed = needed.as_ref().is_none_or(|needed| needed.contains(&instance));
        if is_last || is_needed && matches!(step.end, End::Results(_)) {
            if let Err(why) = perform(step, &mut instances, module) {
                sip::process::fail(format_args!("line {}: {why}", step.line));
            }
        } else if matches!(step.act, Act::Instantiate { .. }) {
            instances.skip();
        }
        if is_last {
            return RETURNED;
        }
    }
    0
}

/// The instances that a step depends on.
fn needed(steps: &[Step], last: usize) -> BTreeSet<u32> {
    let links: Vec<&[crate::script::Link]> = steps
        .iter()
        .filter_map(|step| match &step.act {
            Act::Instantiate { links, .. } => Some(links.as_slice()),
            _ => None,
        })
        .collect();
    let before = &steps[..last.min(steps.len())];
    let first = match steps.get(last).map(|step| &step.act) {
        Some(Act::Call { instance, .. } | Act::Global { instance, .. }) => *instance,
        _ => before.iter().filter(|step| matches!(step.act, Act::Instantiate { .. })).count() as u32,
    };
    let (mut needed, mut open) = (BTreeSet::new(), Vec::from([first]));
    while let Some(instance) = open.pop() {
        if needed.insert(instance) {
            open.extend(
                links.get(instance as usize).into_iter().flat_map(|links| links.iter()).map(|link| link.instance),
            );
        }
    }
    needed
}

fn perform(step: &Step, instances: &mut Instances, module: Module) -> Result<(), String> {
    let results = match &step.act {
        Act::Instantiate { module: part, links } => {
            let part = module.part(*part as usize).ok_or_else(|| format!("there is no module {part}"))?;
            instances.add(part, links.clone()).map_err(|error| format!("{error}"))?;
            Vec::new()
        }
        Act::Call { instance, function, arguments } => {
            let arguments: Vec<u128> = arguments.iter().copied().map(Value::bits).collect();
            instances.call(*instance, *function, &arguments)?
        }
        Act::Global { instance, global } => Vec::from([instances.global(*instance, *global)?]),
    };
    let End::Results(patterns) = &step.end else { return Ok(()) };
    let fit =
        results.len() == patterns.len() && results.iter().zip(patterns).all(|(bits, pattern)| pattern.fits(*bits));
    if fit { Ok(()) } else { Err(mismatch(&results, patterns)) }
}

fn mismatch(results: &[u128], patterns: &[Pattern]) -> String {
    format!("the results are {results:x?}, and must be {patterns:x?}")
}
