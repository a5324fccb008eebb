//! Widening its role: taking one itself or giving one to a child, or dropping the names of its invokers.

use alloc::format;

use sip::principal;

use crate::{Attack, Intruder, NAMESPACE_SLOT, OWN, Outcome, check, comrade, send};

pub(crate) const ATTACKS: &[(&str, Attack)] =
    &[("widen-role", widen_role), ("shed-invokers", shed_invokers), ("is-invoked-by", is_invoked_by)];

fn widen_role(_: &mut Intruder) -> Outcome {
    let own = principal::own();
    for role in ["admin", "a", "admin@root + shell.singularity", "admin + shell.singularity", "Admin", ""] {
        let result = comrade("is-invoked-by", &own)?.invoke_in_role(role).map(drop);
        check!(result.is_err(), "a comrade in the role `{role}`");
    }
    let invoked = comrade("is-invoked-by", &own)?.invoke();
    let invoked = invoked.map_err(|status| format!("a comrade that is invoked: {}", status.text()))?;
    let again = invoked.invoke_in_role("admin").map(drop);
    check!(again.is_err(), "a comrade that was invoked before, in a role");
    check!(principal::own() == own, "it speaks for {} now", principal::own());
    Ok(())
}

/// A child that it starts without an invocation still names its invokers: otherwise a process in a narrow role could
/// restart itself without the role, and reach everything that the program may when not invoked.
fn shed_invokers(intruder: &mut Intruder) -> Outcome {
    let own = principal::own();
    check!(own.contains(" + "), "nobody invoked it, so there is nothing to shed: {own}");
    send(comrade("is-invoked-by", &own)?)?;
    let target = intruder.target.clone();
    let view = intruder.namespace()?.open_directory("").map_err(|error| format!("a namespace: {error}"))?;
    let view = view.into_endpoint().ok_or("a namespace for a comrade is gone")?;
    let comrade = comrade("reach", &target)?.endpoint(NAMESPACE_SLOT, view);
    send(comrade.map_err(|status| format!("a comrade's namespace: {}", status.text()))?)
}

/// A child checks its own principal.
fn is_invoked_by(intruder: &mut Intruder) -> Outcome {
    let (own, expected) = (principal::own(), &intruder.target);
    let rest = own.strip_prefix(expected.as_str()).unwrap_or_default();
    check!(rest == format!(" + {OWN}.singularity"), "it speaks for {own}, and was started by {expected}");
    Ok(())
}
