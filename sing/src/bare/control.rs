//! QEMU's control channel (QMP), over which a machine's power button is pressed.
//!
//! Deliberately not here: the machine's reaction.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use crate::failure::{Failure, Outcome};

/// Ends the capabilities negotiation, which must precede commands, and presses the power button.
const PRESS: &[u8] = b"{\"execute\":\"qmp_capabilities\"}\n{\"execute\":\"system_powerdown\"}\n";

/// The channel to a machine.
#[derive(Debug)]
pub struct Control(UnixStream);

impl Control {
    /// Wraps a connection from QEMU. Its output is read and discarded, so that QEMU never blocks on it.
    ///
    /// # Errors
    /// The host has no more descriptors.
    pub fn of(stream: UnixStream) -> Outcome<Control> {
        let mut told = stream
            .try_clone()
            .map_err(|error| Failure::new(format!("cannot read the machine's control channel: {error}")))?;
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while told.read(&mut buffer).is_ok_and(|count| count > 0) {}
        });
        Ok(Control(stream))
    }

    /// Presses the power button, once.
    ///
    /// # Errors
    /// QEMU has exited.
    pub fn press_power_button(&mut self) -> std::io::Result<()> {
        self.0.write_all(PRESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_an_object_on_a_line() {
        let (ours, mut qemu) = UnixStream::pair().expect("a pair of sockets");
        Control::of(ours).expect("a channel").press_power_button().expect("it is there");
        let mut bytes = vec![0; PRESS.len()];
        qemu.read_exact(&mut bytes).expect("the commands");
        let commands: Vec<String> = String::from_utf8_lossy(&bytes)
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["execute"].to_string())
            .collect();
        assert_eq!(commands, ["\"qmp_capabilities\"", "\"system_powerdown\""]);
    }
}
