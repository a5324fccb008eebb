//! Names of what events give by number, asked from the kernel, and which processes are followed.

use alloc::string::String;

use client::processes::{Instances, none};
use sip::diagnostics::{StreamRecord, name};
use trace_file::{Follow, Names};

/// What is known of the system.
pub struct Known {
    pub names: Names,
    /// The processes that are followed, and the name by which more of them are found.
    follow: Option<(Follow, String)>,
}

impl Known {
    /// Asks for all that there is. `must_run`: a name that nothing has is refused.
    pub fn new(target: Option<(Instances, String)>, must_run: bool) -> Result<Known, String> {
        let processes = sip::diagnostics::processes()
            .map_err(|status| alloc::format!("the processes cannot be listed: {}", status.text()))?;
        let follow = target.map(|(instances, target)| {
            let found = instances.select(&processes, &target);
            (found.is_empty(), Follow::new(found.iter().map(|process| process.id)), target)
        });
        let follow = match follow {
            Some((true, _, target)) if must_run => return Err(none(&target)),
            other => other.map(|(_, follow, target)| (follow, target)),
        };
        let mut known = Known { names: Names::default(), follow };
        for process in processes.iter() {
            known.add(process.id, name(&process.name));
        }
        known.ask_for_contracts();
        Ok(known)
    }

    fn add(&mut self, id: u64, program: String) {
        if self.names.has_process(id) {
            return;
        }
        if let Some((follow, target)) = &mut self.follow
            && (program == *target || target.parse() == Ok(id))
        {
            follow.add(id);
        }
        self.names.add_process(id, program);
    }

    /// Asks for the names that these events need.
    pub fn ask_for(&mut self, events: &[StreamRecord]) {
        let lacks = |known: &Known| {
            let id = |event: &StreamRecord| [event.process, event.runner];
            events.iter().flat_map(id).any(|id| id != 0 && !known.names.has_process(id))
        };
        if lacks(self)
            && let Ok(processes) = sip::diagnostics::processes()
        {
            for process in processes.iter() {
                self.add(process.id, name(&process.name));
            }
        }
        // Some ended before they were asked for.
        if lacks(self)
            && let Ok(ends) = sip::diagnostics::epitaphs()
        {
            for line in ends.lines() {
                let mut parts = line.splitn(4, ' ');
                if let (Some(Ok(id)), _, Some(program)) = (parts.next().map(str::parse), parts.next(), parts.next()) {
                    self.add(id, program.into());
                }
            }
        }
        if events.iter().any(|event| event.message().0 >= self.names.contracts()) {
            self.ask_for_contracts();
        }
    }

    /// Adds the contracts that have been registered since.
    fn ask_for_contracts(&mut self) {
        while let Ok(Some(contract)) = sip::diagnostics::contract(self.names.contracts()) {
            let messages = contract.messages.into_iter().map(|message| message.name).collect();
            self.names.add_contract(contract.name, messages);
        }
    }

    /// Whether an event is to be written.
    pub fn keeps(&mut self, event: &StreamRecord) -> bool {
        self.follow.as_mut().is_none_or(|(follow, _)| follow.keeps(event))
    }
}
