//! Names of processes and contracts, from the kernel, and the processes to follow.

use alloc::string::String;

use client::processes::{Instances, none};
use sip::diagnostics::{StreamRecord, name};
use trace_file::{Follow, Names};

/// Names, and the filter of events.
pub struct Known {
    pub names: Names,
    /// The filter, and the name or id whose later processes join it.
    follow: Option<(Follow, String)>,
}

impl Known {
    /// Reads all names. With `must_run`, a target without a process is an error.
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
        known.read_contracts();
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

    /// Reads names that these events need and that are not yet known.
    pub fn read_names(&mut self, events: &[StreamRecord]) {
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
        // Some have already ended.
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
            self.read_contracts();
        }
    }

    /// Reads contracts registered since the last call.
    fn read_contracts(&mut self) {
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
