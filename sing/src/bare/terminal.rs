//! The user's terminal while a machine owns it: every key goes to the machine, and the mode is restored afterwards.

use std::io::IsTerminal;

use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// A terminal in raw mode, which is restored on drop.
pub struct RawTerminal {
    found: Termios,
}

impl RawTerminal {
    /// Makes the terminal raw; `None` if standard input or output is not a terminal.
    pub fn enter() -> Option<RawTerminal> {
        let (input, output) = (std::io::stdin(), std::io::stdout());
        if !input.is_terminal() || !output.is_terminal() {
            return None;
        }
        let found = tcgetattr(&input).ok()?;
        let mut raw = found.clone();
        raw.input_modes -= InputModes::IGNBRK | InputModes::BRKINT | InputModes::PARMRK | InputModes::ISTRIP;
        raw.input_modes -= InputModes::INLCR | InputModes::IGNCR | InputModes::ICRNL | InputModes::IXON;
        raw.local_modes -= LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON;
        raw.local_modes -= LocalModes::ISIG | LocalModes::IEXTEN;
        // Output stays cooked, so that debug text and the tool's messages start at column 0.
        tcsetattr(&input, OptionalActions::Flush, &raw).ok()?;
        Some(RawTerminal { found })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A closed terminal needs no mode.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Drain, &self.found);
    }
}

/// Boot parameters that describe the terminal.
pub fn parameters() -> Vec<(&'static str, String)> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return vec![("terminal", "none".into())];
    }
    let name = std::env::var("TERM").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "dumb".into());
    let mut parameters = vec![("terminal", name)];
    if let Ok(size) = tcgetwinsize(std::io::stdout()) {
        parameters.push(("columns", size.ws_col.to_string()));
        parameters.push(("rows", size.ws_row.to_string()));
    }
    parameters
}
