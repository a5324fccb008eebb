//! lldb, and editors that speak with it by the Debug Adapter Protocol.
//!
//! A module in lldb's Python adds the symbols of images, as gdb's commands do, and defines `singularity-launch`, which
//! starts the machine. An editor imports the module into the target that its configuration names, and launches by that
//! command. Deliberately not here: bare machines.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::arguments::DebugArguments;
use super::{Target, cannot_start, end_of, words};
use crate::bare::debug::{LINES, plain};
use crate::failure::Outcome;
use crate::host_tools::{self, Tool};

/// Name under which lldb imports the module, which is that of its file.
const MODULE: &str = "launch";

/// The module, after its settings.
const CODE: &str = "\
import os
import lldb

def image_loaded(frame, location, extra, internal):
    process = frame.GetThread().GetProcess()
    register = lambda name: frame.FindRegister(name).GetValueAsUnsigned()
    name = process.ReadMemory(register('rdi'), register('rsi'), lldb.SBError()).decode()
    target = process.GetTarget()
    symbols = FOLDER + '/' + name
    path = symbols + LINES if os.path.exists(symbols + LINES) else symbols
    module = target.AddModule(path, 'x86_64', None)
    # A file of symbols alone has no segments, but a section.
    target.SetModuleLoadAddress(module, register('rdx'))
    for section in module.sections:
        if section.GetName() == '.text':
            target.SetSectionLoadAddress(section, section.GetFileAddress() + register('rdx'))
    return False

def launch(debugger, command, result, internal):
    target = debugger.GetSelectedTarget()
    point = target.BreakpointCreateByName('singularity_image_loaded')
    point.SetScriptCallbackFunction(__name__ + '.image_loaded')
    information = lldb.SBLaunchInfo(ARGUMENTS)
    information.SetWorkingDirectory(os.getcwd())
    information.SetLaunchFlags(lldb.eLaunchFlagStopAtEntry)
    error = lldb.SBError()
    was_asynchronous = debugger.GetAsync()
    debugger.SetAsync(False)
    process = target.Launch(information, error)
    debugger.SetAsync(was_asynchronous)
    if error.Fail():
        result.SetError(error.GetCString())
        return
    signals = process.GetUnixSignals()
    for name in SIGNALS.split():
        number = signals.GetSignalNumberFromName(name)
        signals.SetShouldStop(number, False)
        signals.SetShouldNotify(number, False)
        signals.SetShouldSuppress(number, False)

def __lldb_init_module(debugger, internal):
    # Line tables have paths relative to the roots of the sources.
    pairs = [word for root in SOURCES for word in ['.', root, 'target/sing/stubs', root]]
    debugger.HandleCommand('settings set target.source-map ' + ' '.join(pairs))
    debugger.HandleCommand('command script add -f ' + __name__ + '.launch singularity-launch')
";

/// Returns the module for a machine.
///
/// # Errors
/// A path has characters with a meaning in Python.
pub fn module(target: &Target) -> Outcome<String> {
    // JSON strings are strings of Python.
    let arguments: Vec<_> = target.arguments.iter().map(|word| serde_json::Value::from(word.as_str())).collect();
    let roots = target.sources.iter().map(|root| plain(root)).collect::<Outcome<Vec<_>>>()?;
    Ok(format!(
        "FOLDER, LINES, SIGNALS = '{}', '{LINES}', '{}'\nSOURCES = {}\nARGUMENTS = {}\n\n{CODE}",
        plain(&target.images)?,
        target.signals,
        serde_json::Value::from(roots),
        serde_json::Value::from(arguments)
    ))
}

/// Runs lldb; returns its exit status.
///
/// # Errors
/// lldb cannot be started.
pub fn run(target: &Target, arguments: &DebugArguments) -> Outcome<u8> {
    let lldb = host_tools::require(&Tool::LLDB)?;
    let folder = tempfile::Builder::new().prefix("sing-debug-").tempdir().map_err(cannot_start)?;
    let path = folder.path().join(format!("{MODULE}.py"));
    std::fs::write(&path, module(target)?).map_err(cannot_start)?;
    let mut command = Command::new(&lldb);
    if let Some(modules) = python_modules() {
        command.env("PYTHONPATH", modules);
    }
    command.args(words(["--no-lldbinit", "-o", &format!("command script import {}", plain(&path)?)]));
    if arguments.batch.is_empty() {
        command.args(words([
            "-o",
            "script print('`singularity-launch` starts the machine, stopped at its first instruction.')",
        ]));
    } else {
        command.arg("--batch").stdin(Stdio::null());
        for line in arguments.batch.iter().flat_map(|text| text.lines()) {
            command.args(words(["-o", line]));
        }
    }
    command.arg(&target.program);
    end_of(command, &lldb)
}

/// Returns the folder of lldb's Python modules where lldb itself does not find it: Debian's names another, and puts
/// them beside the program's libraries.
fn python_modules() -> Option<PathBuf> {
    let is_there = |folder: &Path| folder.join("lldb/__init__.py").is_file();
    let told = Command::new("lldb").arg("-P").stdin(Stdio::null()).output().ok()?;
    if is_there(Path::new(String::from_utf8_lossy(&told.stdout).trim())) {
        return None;
    }
    let libraries = std::fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path());
    let versions = libraries.filter(|path| path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"llvm-")));
    let inside = versions.flat_map(|version| std::fs::read_dir(version.join("lib")).into_iter().flatten().flatten());
    inside.map(|entry| entry.path().join("dist-packages")).find(|folder| is_there(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_has_the_words_of_the_machine_as_strings() {
        let target = Target {
            program: "/m".into(),
            arguments: vec!["--parameter".into(), "commands=echo \"a\" 'b' \\ \n".into()],
            images: "/i".into(),
            sources: vec!["/s".into()],
            signals: "SIGUSR1",
            more: String::new(),
            greeting: "",
        };
        let module = module(&target).expect("plain paths");
        assert!(
            module.starts_with("FOLDER, LINES, SIGNALS = '/i', '.lines', 'SIGUSR1'\nSOURCES = [\"/s\"]\n"),
            "{module}"
        );
        assert!(module.contains(r#"ARGUMENTS = ["--parameter","commands=echo \"a\" 'b' \\ \n"]"#), "{module}");
        assert!(super::module(&Target { images: "/it's".into(), ..target }).is_err());
    }
}
