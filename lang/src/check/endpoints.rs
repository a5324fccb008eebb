//! Rules for endpoints moved in messages.
//!
//! An endpoint may be moved only in states in which its own side sends next. Then it has received all messages sent to
//! it, so its queue is empty and no message is in flight.

use abi::Direction;

use super::declare::Scope;
use super::states::Graph;
use crate::syntax::ArgumentKindTree;
use crate::{Code, Diagnostic};

/// Reports endpoint arguments in states in which they cannot be moved.
pub fn check(scope: &Scope<'_>, graphs: &[Graph], diagnostics: &mut Vec<Diagnostic>) {
    let messages = scope.contracts.iter().flat_map(|contract| &contract.messages);
    for argument in messages.flat_map(|message| &message.arguments) {
        let ArgumentKindTree::Endpoint { contract: name, importer, state } = &argument.kind else { continue };
        let Some(contract) = scope.contract(&name.text) else { continue };
        let Some(number) = scope.contracts[contract].state(&state.text) else { continue };
        let side = if *importer { Direction::ToExporter } else { Direction::ToImporter };
        let graph = &graphs[contract];
        let sender = graph.sender_in(number);
        if sender == Some(side) {
            continue;
        }
        let (end, other) = if *importer { ("importing", "exporting") } else { ("exporting", "importing") };
        let why = match sender {
            Some(_) => format!("the {other} end sends next in this state, and its message may be in flight"),
            None => "the conversation has ended in this state".to_string(),
        };
        let text = format!("the {end} end of `{}` cannot be moved in state `{}`", name.text, state.text);
        let movable: Vec<String> = (0..scope.contracts[contract].states.len())
            .filter(|&state| graph.sender_in(state) == Some(side))
            .map(|state| format!("`{}`", graph.nodes[state].name))
            .collect();
        let remedy = if movable.is_empty() {
            format!("add a state to `{}` in which the {end} end sends", name.text)
        } else {
            format!("move it in a state in which it sends next: {}", movable.join(" or "))
        };
        diagnostics.push(
            Diagnostic::new(Code::ImmovableEndpoint, state.span, text, why)
                .also(scope.contracts[contract].states[number].name.span, "state declared here")
                .remedy(remedy),
        );
    }
}
