//! Builtin commands, which act on the shell itself.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use command_language::{Flow, PathKind, Scope, quote};
use contracts::console::LineKind;
use contracts::directory::NodeKind;

use crate::help;
use crate::job_commands;
use crate::jobs::STATUS_INTERRUPTED;
use crate::shell::{Error, STATUS_NOT_FOUND, Shell};
use crate::terminal::Answer;

/// Context of a builtin.
pub struct Call<'a, 's> {
    /// Arguments.
    pub words: &'a [String],
    /// Output.
    pub out: &'a mut Vec<u8>,
    /// Variables and functions of the script, if it may change them.
    pub scope: Option<&'a mut Scope<'s>>,
}

/// A builtin command.
#[derive(Clone, Copy)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// Usage line.
    pub usage: &'static str,
    /// One-line description.
    pub summary: &'static str,
    action: fn(&mut Shell, Call<'_, '_>) -> Result<Flow, Error>,
}

/// The `help` builtin.
pub const HELP: &Builtin = &Builtin {
    name: "help",
    usage: "help [NAME]",
    summary: "lists programs and commands, or describes one",
    action: help,
};

/// All builtins, sorted by name.
pub const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "bg",
        usage: "bg [NUMBER]",
        summary: "resumes a stopped job in the background",
        action: job_commands::bg,
    },
    Builtin {
        name: "cd",
        usage: "cd [FOLDER|-]",
        summary: "changes the working folder; `-` is the previous one",
        action: cd,
    },
    Builtin { name: "exit", usage: "exit [STATUS]", summary: "ends the shell or script", action: exit },
    Builtin { name: "false", usage: "false", summary: "fails", action: |_, _| Ok(Flow::Status(1)) },
    Builtin { name: "fg", usage: "fg [NUMBER]", summary: "brings a job to the foreground", action: job_commands::fg },
    *HELP,
    Builtin {
        name: "history",
        usage: "history [COUNT]",
        summary: "lists earlier lines; `!NUMBER`, `!!` and `!BEGINNING` recall one",
        action: history,
    },
    Builtin { name: "jobs", usage: "jobs", summary: "lists background and stopped jobs", action: job_commands::jobs },
    Builtin { name: "pwd", usage: "pwd", summary: "prints the working folder", action: pwd },
    Builtin { name: "read", usage: "read NAME", summary: "reads a line into a variable", action: read },
    Builtin { name: "run", usage: "run FILE [WORD...]", summary: "runs a script", action: run_script },
    Builtin { name: "set", usage: "set", summary: "lists the variables", action: set },
    Builtin { name: "test", usage: "test CONDITION", summary: "succeeds if the condition holds", action: test },
    Builtin { name: "true", usage: "true", summary: "succeeds", action: |_, _| Ok(Flow::Status(0)) },
    Builtin { name: "unset", usage: "unset NAME...", summary: "removes variables and functions", action: unset },
    Builtin {
        name: "wait",
        usage: "wait [NUMBER]",
        summary: "waits for background jobs; Ctrl-C ends the wait",
        action: job_commands::wait,
    },
    Builtin { name: "which", usage: "which NAME...", summary: "shows what a name runs", action: which },
];

/// Returns the builtin of this name.
pub fn find(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.name == name)
}

/// Runs a builtin in a pipeline, where it cannot change variables.
pub fn run(shell: &mut Shell, builtin: &Builtin, words: &[String], out: &mut Vec<u8>) -> Result<Flow, Error> {
    call(shell, builtin, Call { words, out, scope: None })
}

/// Runs a builtin.
pub fn call(shell: &mut Shell, builtin: &Builtin, call: Call<'_, '_>) -> Result<Flow, Error> {
    if matches!(call.words, [word] if ["-?", "-h", "--help"].contains(&word.as_str())) {
        call.out.extend_from_slice(describe(builtin).as_bytes());
        return Ok(Flow::Status(0));
    }
    (builtin.action)(shell, call)
}

fn describe(builtin: &Builtin) -> String {
    let more = match builtin.name {
        "test" => {
            "\n  test A = B, test A != B        texts\n  test A -lt B, -le -gt -ge      whole numbers; also '<' '<=' '>' '>=' in quotes\n  \
             test A -eq B, -ne              whole numbers\n  test empty A                   a text\n  test exists|file|folder PATH   a path\n  \
             test not ...                   the opposite\n"
        }
        _ => "",
    };
    format!("{}: {}\n\nusage: {}\n{more}", builtin.name, builtin.summary, builtin.usage)
}

/// Returns the usage error of a builtin.
pub fn misused(name: &str) -> Error {
    let usage = find(name).map_or("", |builtin| builtin.usage);
    Error { status: crate::shell::STATUS_MISTAKE, message: format!("{name}: wrong arguments; usage: {usage}") }
}

fn done() -> Result<Flow, Error> {
    Ok(Flow::Status(0))
}

fn cd(shell: &mut Shell, call: Call<'_, '_>) -> Result<Flow, Error> {
    let asked = match call.words {
        [] => "/",
        [word] if word == "-" => {
            let before = shell.previous_folder().map(String::from);
            let before = before.ok_or_else(|| Error::new("cd: no previous folder".into()))?;
            call.out.extend_from_slice(format!("{before}\n").as_bytes());
            &before.clone()
        }
        [folder] => folder,
        _ => return Err(misused("cd")),
    };
    let full = shell.absolute(asked);
    shell.namespace.open_directory(&full).map_err(|error| Error::new(format!("cd: {asked}: {error}")))?;
    shell.set_folder(full);
    done()
}

fn pwd(shell: &mut Shell, call: Call<'_, '_>) -> Result<Flow, Error> {
    call.out.extend_from_slice(format!("{}\n", shell.folder()).as_bytes());
    done()
}

fn exit(shell: &mut Shell, call: Call<'_, '_>) -> Result<Flow, Error> {
    match call.words {
        [] => Ok(Flow::Exit(shell.last_status())),
        [status] => match status.parse::<u8>() {
            Ok(status) => Ok(Flow::Exit(i32::from(status))),
            Err(_) => Err(Error::new(format!("exit: invalid status `{status}`; use 0 to 255"))),
        },
        _ => Err(misused("exit")),
    }
}

fn help(shell: &mut Shell, call: Call<'_, '_>) -> Result<Flow, Error> {
    let text = match call.words {
        [] => help::overview(shell.programs()),
        [name] => match (find(name), shell.programs().find(name)) {
            (Some(builtin), _) => describe(builtin),
            (None, Some(manifest)) => help::program(&manifest),
            (None, None) => {
                let message = format!("help: no command `{name}`; `help` lists them");
                return Err(Error { status: STATUS_NOT_FOUND, message });
            }
        },
        _ => return Err(misused("help")),
    };
    call.out.extend_from_slice(text.as_bytes());
    done()
}

fn read(shell: &mut Shell, call: Call<'_, '_>) -> Result<Flow, Error> {
    let ([name], Some(scope)) = (call.words, call.scope) else { return Err(misused("read")) };
    if let Some(input) = shell.inputs.last_mut() {
        return match input.line() {
            Ok(Some(line)) => {
                scope.variables.insert(name.clone(), line);
                done()
            }
            Ok(None) => Ok(Flow::Status(1)),
            Err(error) => Err(Error::new(format!("read: {error}"))),
        };
    }
    match shell.read_line(LineKind::Text, "") {
        Answer::Line(line) => {
            scope.variables.insert(name.clone(), line);
            done()
        }
        Answer::Interrupted => Ok(Flow::GivenUp(STATUS_INTERRUPTED)),
        Answer::EndOfInput => Ok(Flow::Status(1)),
        Answer::Unreachable(error) => Err(Error::new(format!("read: the console: {error}"))),
    }
}

fn history(shell: &mut Shell, call: Call<'_, '_>) -> Result<Flow, Error> {
    let count = match call.words {
        [] => usize::MAX,
        [count] => count.parse().map_err(|_| misused("history"))?,
        _ => return Err(misused("history")),
    };
    for (number, line) in shell.history.last(count) {
        call.out.extend_from_slice(format!("{number:5}  {}\n", line.replace('\n', "\n       ")).as_bytes());
    }
    done()
}

impl Shell {
    /// Warns an interactive user that a new function hides a command. Scripts do so on purpose.
    pub fn tell_of_hidden(&mut self, name: &str) {
        let hidden = match (find(name), self.programs().find(name)) {
            (Some(_), _) => "command of the shell",
            (None, Some(_)) => "program",
            (None, None) => return,
        };
        if self.is_interactive() {
            self.report(&format!("the function {name} hides the {hidden} of that name; `unset {name}` removes it"));
        }
    }
}

fn which(shell: &mut Shell, call: Call<'_, '_>) -> Result<Flow, Error> {
    if call.words.is_empty() {
        return Err(misused("which"));
    }
    let mut status = 0;
    for name in call.words {
        let function = call.scope.as_ref().and_then(|scope| scope.function(name));
        let text = match (function, find(name), shell.programs().find(name)) {
            (Some(definition), ..) => format!("{name}: a function\n{definition}\n"),
            (None, Some(_), _) => format!("{name}: a command of the shell\n"),
            (None, None, Some(manifest)) => {
                format!("{name}: the program {}, version {}\n", manifest.principal(), manifest.version)
            }
            (None, None, None) => {
                shell.error(&format!("which: no command `{name}`; `help` lists them"));
                status = 1;
                continue;
            }
        };
        call.out.extend_from_slice(text.as_bytes());
    }
    Ok(Flow::Status(status))
}

fn run_script(shell: &mut Shell, call: Call<'_, '_>) -> Result<Flow, Error> {
    let [file, arguments @ ..] = call.words else { return Err(misused("run")) };
    shell.script_flow(file, arguments)
}

fn set(_: &mut Shell, call: Call<'_, '_>) -> Result<Flow, Error> {
    if !call.words.is_empty() {
        return Err(misused("set"));
    }
    for (name, value) in call.scope.iter().flat_map(|scope| scope.variables.iter()) {
        call.out.extend_from_slice(format!("{name}={}\n", quote(value)).as_bytes());
    }
    done()
}

fn unset(_: &mut Shell, call: Call<'_, '_>) -> Result<Flow, Error> {
    let (false, Some(scope)) = (call.words.is_empty(), call.scope) else { return Err(misused("unset")) };
    for name in call.words {
        if scope.variables.remove(name).is_none() {
            scope.forget_function(name);
        }
    }
    done()
}

fn test(shell: &mut Shell, call: Call<'_, '_>) -> Result<Flow, Error> {
    let holds = command_language::holds(call.words, &mut |asked| {
        let full = path::absolute(shell.folder(), asked);
        match shell.namespace.attributes(&full) {
            Ok((NodeKind::Directory | NodeKind::Mount, _)) => PathKind::Folder,
            Ok((NodeKind::Link, _)) if shell.namespace.open_directory(&full).is_ok() => PathKind::Folder,
            Ok(_) => PathKind::Other,
            Err(_) => PathKind::Missing,
        }
    });
    match holds {
        Ok(holds) => Ok(Flow::Status(i32::from(!holds))),
        Err(message) => Err(Error { status: crate::shell::STATUS_MISTAKE, message: format!("test: {message}") }),
    }
}
