//! What a run leaves for the tool: one line of JSON.
//!
//! Key types: [`End`], [`Report`]. Deliberately not here: judging it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::choices::Fault;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The system powered the machine off.
    Off,
    /// The system restarted the machine.
    Restart,
    /// The power failed.
    Cut,
    /// Nothing can run, and nothing will happen: everybody waits for ever.
    Stuck,
    /// Processors spin for a lock that nobody releases.
    Spin,
    /// The limit of virtual time is over.
    Late,
}

impl End {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            End::Off => "off",
            End::Restart => "restart",
            End::Cut => "cut",
            End::Stuck => "stuck",
            End::Spin => "spin",
            End::Late => "late",
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Hash of the trace.
    pub hash: u64,
    /// Virtual time from power on, in nanoseconds.
    pub virtual_ns: u64,
    /// ABI calls that ended.
    pub calls: u64,
    /// Entries of the trace.
    pub events: u64,
    /// How it ended.
    pub end: End,
    /// The exit status of the system, for [`End::Off`].
    pub status: u8,
    /// The faults, in order.
    pub faults: Vec<Fault>,
    /// The programs that faults ended, in order: name and process id.
    pub killed: Vec<String>,
}

impl Report {
    /// Renders it as one line of JSON.
    pub fn json(&self) -> String {
        let Report { hash, virtual_ns, calls, events, end, status, faults, killed } = self;
        let mut text = format!(
            "{{\"hash\":\"{hash:016x}\",\"virtual_ns\":{virtual_ns},\"calls\":{calls},\"events\":{events},\
             \"end\":\"{}\",\"status\":{status},\"faults\":[",
            end.name()
        );
        for (number, fault) in faults.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            // Writing to a string does not fail.
            let _ = write!(text, "{comma}\"{fault}\"");
        }
        text += "],\"killed\":[";
        for (number, program) in killed.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            // As above. Names of programs need no escapes.
            let _ = write!(text, "{comma}\"{program}\"");
        }
        text + "]}\n"
    }

    /// Writes it to a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        fs::write(path, self.json())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::Kind;

    #[test]
    fn it_is_one_line_of_json() {
        let fault = Fault { kind: Kind::Cut, number: 3 };
        let faults = vec![fault, Fault { number: 4, ..fault }];
        let report = Report {
            hash: 0xab,
            virtual_ns: 5,
            calls: 2,
            events: 9,
            end: End::Cut,
            status: 0,
            faults,
            killed: vec!["a 7".into()],
        };
        let expected = "{\"hash\":\"00000000000000ab\",\"virtual_ns\":5,\"calls\":2,\"events\":9,\"end\":\"cut\",\
                        \"status\":0,\"faults\":[\"cut:3\",\"cut:4\"],\"killed\":[\"a 7\"]}\n";
        assert_eq!(report.json(), expected);
    }
}
