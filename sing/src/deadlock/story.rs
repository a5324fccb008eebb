//! A counterexample as a story: who sends what to whom, and who then waits for whom.

use lang::{Deed, Event};

use crate::deadlock::model::Model;
use crate::deadlock::waits::Waits;

/// Returns the sentences of a story, in order; the last ones tell who waits.
pub fn told(waits: &Waits, model: &Model<'_>, events: &[Event]) -> Vec<String> {
    let mut lines = Vec::new();
    // By task: the channel whose answer it waits for.
    let mut waiting: Vec<Option<usize>> = vec![None; waits.tasks.len()];
    for event in events {
        let Some(channel) = model.channels.get(event.channel) else { continue };
        let (actor, peer) = match event.by_importer {
            true => (channel.importer, channel.exporter),
            false => (channel.exporter, channel.importer),
        };
        if let Some(place) = waiting.get_mut(actor).filter(|_| event.by_importer) {
            *place = event.waits.then_some(event.channel);
        }
        let (actor, peer) = (waits.tasks[actor].name(), waits.tasks[peer].name());
        let contract = &channel.contract;
        let message = message_name(waits, contract, event.message);
        lines.push(match event.deed {
            Deed::Bind => format!("`{actor}` binds a channel to `{peer}`: {contract}"),
            Deed::Send => format!("`{actor}` sends `{peer}` {contract}.{message}"),
            Deed::Receive => format!("`{actor}` receives {contract}.{message} from `{peer}`"),
        });
    }
    for (task, channel) in waiting.iter().enumerate() {
        let Some(channel) = channel.and_then(|channel| model.channels.get(channel)) else { continue };
        lines.push(format!(
            "then `{}` waits for `{}` to answer on {}",
            waits.tasks[task].name(),
            waits.tasks[channel.exporter].name(),
            channel.contract
        ));
    }
    lines
}

fn message_name(waits: &Waits, contract: &str, tag: usize) -> String {
    let automaton = waits.automata.get(contract);
    automaton.and_then(|automaton| automaton.messages.get(tag)).map_or(String::new(), |message| message.name.clone())
}
