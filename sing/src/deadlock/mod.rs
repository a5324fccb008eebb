//! `sing check --deadlock`: whether programs of a system can wait for each other in a circle.
//!
//! First an order is looked for in which each waits only for those below it ([`waits`]). Where there is none, a model of
//! the circle ([`model`]) goes to `spin` ([`checker`]), and a counterexample is told as a [`story`]. Deliberately not
//! here: how channels come about, which the crate `install` derives from the manifests.

mod checker;
mod model;
mod story;
mod view;
mod waits;

use std::path::Path;

use install::Installed;

use crate::deadlock::checker::Found;
use crate::deadlock::model::{CHANNELS_MAX, Model};
use crate::deadlock::waits::Waits;
use crate::failure::Outcome;
use crate::repository::Repository;
use crate::systems::{self, Catalogue};

/// What is known of a circle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The contracts let nobody wait for ever: `spin` has seen all states.
    Cleared,
    /// They can wait for each other for ever; the story of how.
    Deadlock(Vec<String>),
    /// Not known, for this reason; a remedy.
    Undecided(String),
}

/// A circle of waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circle {
    /// Names of its tasks.
    pub tasks: Vec<String>,
    /// Who waits for whom on which contract.
    pub waits: Vec<(String, String, String)>,
    /// What is known of it.
    pub verdict: Verdict,
}

/// What is known of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// Name of the system.
    pub system: String,
    /// Tasks that others wait for, by layer: each waits only for tasks of layers before its own, and for circles.
    pub layers: Vec<Vec<String>>,
    /// Programs that nobody waits for.
    pub clients: Vec<String>,
    /// Circles of waits.
    pub circles: Vec<Circle>,
    /// What was taken for true: what programs say of their waits.
    pub claims: Vec<String>,
}

impl Analysis {
    /// Returns whether nobody can wait in a circle for ever.
    pub fn is_free(&self) -> bool {
        self.circles.iter().all(|circle| circle.verdict == Verdict::Cleared)
    }
}

/// `sing check --deadlock`. Returns 1 if a deadlock is possible, or not excluded, in any of the systems.
///
/// # Errors
/// The system does not exist or has an error.
pub fn check(repository: &Repository, system: Option<&Path>, as_json: bool) -> Outcome<u8> {
    let catalogue = Catalogue::read(repository)?;
    let named = match system {
        Some(system) => vec![system.to_path_buf()],
        None => repository.system_names().into_iter().map(Into::into).collect(),
    };
    let mut analyses = Vec::new();
    for name in named {
        let path = repository.system_manifest(&name)?;
        analyses.push(analyse(&systems::described(repository, &catalogue, &path)?)?);
    }
    if as_json {
        println!("{}", serde_json::Value::from(analyses.iter().map(view::json).collect::<Vec<_>>()));
    } else {
        analyses.iter().for_each(|analysis| print!("{}", view::text(analysis)));
    }
    Ok(u8::from(!analyses.iter().all(Analysis::is_free)))
}

/// Analyses a system.
///
/// # Errors
/// `spin` does not accept a model.
pub fn analyse(installed: &Installed) -> Outcome<Analysis> {
    let waits = Waits::of(installed);
    let mut circles = Vec::new();
    for group in waits.groups().iter().filter(|group| waits.is_circle(group)) {
        circles.push(circle(&waits, group)?);
    }
    let layers = waits.layers();
    let mut by_layer: Vec<Vec<String>> = Vec::new();
    let mut clients = Vec::new();
    for (task, layer) in layers.into_iter().enumerate() {
        let name = waits.tasks[task].name();
        if !waits.waits.iter().any(|wait| wait.to == task) {
            // A program whose exported contracts all have tasks of their own is one of its own clients.
            if waits.tasks[task].contract.is_none() {
                clients.push(name);
            }
            continue;
        }
        by_layer.resize_with(by_layer.len().max(layer + 1), Vec::new);
        by_layer[layer].push(name);
    }
    let claims = waits.claims.iter().map(view::claim).collect();
    Ok(Analysis { system: installed.system.name.clone(), layers: by_layer, clients, circles, claims })
}

fn circle(waits: &Waits, group: &[usize]) -> Outcome<Circle> {
    let name = |task: usize| waits.tasks[task].name();
    let within = waits.within(group);
    Ok(Circle {
        tasks: group.iter().map(|&task| name(task)).collect(),
        waits: within.iter().map(|wait| (name(wait.from), name(wait.to), wait.contract.clone())).collect(),
        verdict: verdict(waits, group)?,
    })
}

fn verdict(waits: &Waits, group: &[usize]) -> Outcome<Verdict> {
    let model = Model::of(waits, group);
    if model.channels.len() > CHANNELS_MAX {
        return Ok(Verdict::Undecided(format!(
            "its model would have {} channels, and at most {CHANNELS_MAX} can be searched; break the circle with `waits-for` in a manifest",
            model.channels.len()
        )));
    }
    let Some(text) = model.text() else {
        return Ok(Verdict::Undecided("a contract's automaton cannot be read; build the programs again".into()));
    };
    let spin = match checker::spin() {
        Ok(spin) => spin,
        // The rest of the analysis holds without it.
        Err(failure) => return Ok(Verdict::Undecided(failure.to_string())),
    };
    Ok(match checker::search(&spin, &text)? {
        Found::None => Verdict::Cleared,
        Found::Deadlock(events) => Verdict::Deadlock(story::told(waits, &model, &events)),
        Found::Undecided(why) => Verdict::Undecided(why),
    })
}

#[cfg(test)]
mod tests;
