//! `sing debug`: runs a machine in QEMU under gdb, with the symbols of the kernel and of every image.
//!
//! The kernel calls an empty hook function whenever it has mapped an image; gdb breaks there and adds the image's
//! symbols at the address in its argument. The machine waits before its first instruction. Deliberately not here: the
//! debugger.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use elf::ElfBytes;
use elf::abi::{PF_X, PT_LOAD};
use elf::endian::LittleEndian;
use package::{Delivery, SystemImage};
use package_check::PackageError;
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;

use crate::bare::guest::Guest;
use crate::bare::kernel::{self, Variant};
use crate::bare::prepared::{Person, Prepared};
use crate::bare::qemu::{self, Kind};
use crate::bare::symbols;
use crate::build_lock;
use crate::cargo::Metadata;
use crate::command_line::MachineName;
use crate::failure::{Failure, Outcome};
use crate::host_tools::{self, Tool};
use crate::line_tables;
use crate::process_debug::arguments::{DebugArguments, Stop};
use crate::programs::{Program, Programs};
use crate::repository::{Repository, write_if_changed};
use crate::run;
use crate::stubs::EntryStubs;

/// File name of the kernel's symbols among those of the images; program names contain no dot.
const KERNEL: &str = "the.kernel";

/// Suffix of files with line tables.
pub const LINES: &str = ".lines";

/// Initial gdb settings.
pub const SETTINGS: &str = "\
set confirm off
set pagination off
set breakpoint pending on
";

/// gdb derives a machine's address size from its 64-bit registers.
const ARCHITECTURE: &str = "set architecture i386:x86-64\n";

/// Breakpoints of a machine whose firmware has not loaded the kernel yet, and of one that has a file.
const HARDWARE: &str = "BP_HARDWARE_BREAKPOINT";
/// See [`HARDWARE`].
pub const SOFTWARE: &str = "BP_BREAKPOINT";

/// Adds the symbols of each image when the kernel has mapped it. `point`, `folder` and `lines` are set before.
pub const IMAGES: &str = "\
python
import os
class ImageLoaded(gdb.Breakpoint):
    def __init__(self):
        super().__init__('*&singularity_image_loaded', getattr(gdb, point), internal=True)
        self.silent, self.added = True, set()

    def stop(self):
        register = lambda name: int(gdb.parse_and_eval('$' + name)) & 0xffffffffffffffff
        memory = gdb.selected_inferior().read_memory(register('rdi'), register('rsi'))
        path = folder + '/' + memory.tobytes().decode()
        for file in [path, path + lines]:
            if os.path.exists(file) and (file, register('rdx')) not in self.added:
                self.added.add((file, register('rdx')))
                gdb.execute('add-symbol-file %s -o %#x' % (file, register('rdx')), to_string=True)
        return False

ImageLoaded()
end
";

/// Ends `backtrace` at the first frame without a function: beyond a thread's entry there are no frames, only stale
/// stack content.
pub const FRAMES: &str = "\
python
class WithFunctions:
    def __init__(self):
        self.name, self.priority, self.enabled = 'singularity', 100, True
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        for level, frame in enumerate(frames):
            if level and not frame.inferior_frame().name():
                return
            yield frame

WithFunctions()
end
";

/// Runs a batch of commands; the last may be a `continue` to the machine's end.
pub const BATCH: &str = "\
python
try:
    gdb.execute('source ' + batch)
except gdb.error as error:
    if 'Remote connection closed' not in str(error) and 'not being run' not in str(error):
        raise
    print('The machine has ended.')
end
";

/// `sing debug`. Returns gdb's exit status.
///
/// # Errors
/// The system does not build, or the machine or gdb cannot be started.
pub fn debug(repository: &Repository, arguments: &DebugArguments) -> Outcome<u8> {
    let kind = match arguments.run.machine {
        Some(MachineName::Microvm) => Kind::Microvm,
        _ => Kind::Q35,
    };
    if arguments.stop == Stop::Program {
        return Err(Failure::new("QEMU stops all processors of a machine at once")
            .remedy("use --stop machine, or --machine hosted"));
    }
    if arguments.run.record.is_some() {
        return Err(Failure::new("a bare machine under a debugger is not recorded").remedy(
            "record it with `cargo sing run --record FILE`, and debug the replay with `cargo sing debug --replay FILE`",
        ));
    }
    let gdb = host_tools::require(&Tool::GDB)?;
    let disks = run::disks(repository, &arguments.run)?;
    let mut prepared = Prepared::new(repository, kind, &arguments.run, &disks, Person::Elsewhere)?;
    let with_lines = images_with_lines(repository, &arguments.lines)?;
    let images = write_images(repository, &prepared.system, &with_lines)?;
    write_if_changed(&images.join(KERNEL), &symbols::file(&kernel::symbols(repository, Variant::Standard)?))?;
    let folder = tempfile::Builder::new().prefix("sing-debug-").tempdir().map_err(cannot_start)?;
    let socket = folder.path().join("gdb");
    prepared.hardware.more.extend(stub(&socket)?);
    let script = folder.path().join("script");
    let batch = folder.path().join("batch");
    std::fs::write(&batch, arguments.batch.join("\n") + "\n").map_err(cannot_start)?;
    let files = Files {
        kernel: &kernel::with_symbols(repository),
        sources: repository.base(),
        images: &images,
        socket: &socket,
    };
    let batch = (!arguments.batch.is_empty()).then_some(batch.as_path());
    std::fs::write(&script, commands(&files, batch)?).map_err(cannot_start)?;
    // Ctrl-C is for gdb, which then stops the machine.
    let _interrupts = Signals::new([SIGINT]).map_err(cannot_start)?;
    let guest = Guest::start(&prepared.hardware)?;
    let shown = guest.show()?;
    let mut command = Command::new(&gdb);
    command.args(["-q", "-nx"]);
    if !arguments.batch.is_empty() {
        command.arg("-batch").stdin(Stdio::null());
    }
    let status = command.arg("-x").arg(&script).status().map_err(|error| Failure::file("start", &gdb, &error))?;
    guest.end();
    shown.finish();
    Ok(status.code().or_else(|| status.signal().map(|signal| 128 + signal)).map_or(1, |code| code as u8))
}

fn cannot_start(error: std::io::Error) -> Failure {
    Failure::new(format!("cannot start the debugger: {error}"))
}

/// Returns QEMU's arguments for a machine that waits for gdb at a socket.
fn stub(socket: &Path) -> Outcome<Vec<OsString>> {
    let mut words = vec!["-S".into(), "-gdb".into(), "chardev:gdb".into(), "-chardev".into()];
    words.push(qemu::with_path("socket,id=gdb,server=on,wait=off,path=", socket, "")?);
    Ok(words)
}

/// Builds these programs with line tables; returns the path of each image by program name.
///
/// # Errors
/// There is no such program, or it does not build.
pub fn images_with_lines(repository: &Repository, names: &[String]) -> Outcome<BTreeMap<String, PathBuf>> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let programs = Programs::find(repository);
    let selected: Vec<&Program> = names.iter().map(|name| programs.get(name)).collect::<Outcome<_>>()?;
    let _lock = build_lock::lock(repository)?;
    let stubs = EntryStubs::generate(repository, programs.all())?;
    let metadata = Metadata::of_workspace(&stubs.manifest(), &stubs.encoded_flags())?;
    line_tables::images(repository, &stubs, &metadata, &selected)
}

/// Returns the code of an image.
fn code(image: &[u8]) -> Option<Vec<&[u8]>> {
    let file = ElfBytes::<LittleEndian>::minimal_parse(image).ok()?;
    let segments = file.segments()?;
    let code = segments.iter().filter(|segment| segment.p_type == PT_LOAD && segment.p_flags & PF_X != 0);
    code.map(|segment| file.segment_data(&segment).ok()).collect()
}

/// Whether two images have the same code.
pub fn is_same_code(one: &[u8], other: &[u8]) -> bool {
    code(one).is_some_and(|code_of_one| Some(code_of_one) == code(other))
}

/// Copies an image with line tables beside the symbols of the running one, if their code is equal.
fn write_lines(path: &Path, image: &[u8], with_lines: Option<&PathBuf>) -> Outcome<()> {
    let Some(source) = with_lines else {
        // A leftover of an earlier run belongs to another image.
        return match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::file("remove", path, &error)),
            _ => Ok(()),
        };
    };
    let bytes = std::fs::read(source).map_err(|error| Failure::file("read", source, &error))?;
    if !is_same_code(image, &bytes) {
        let name = path.file_stem().unwrap_or_default().display();
        return Err(Failure::new(format!("the image of `{name}` in the system does not match the sources"))
            .remedy("revert installed packages with `cargo sing systems --as-built`"));
    }
    write_if_changed(path, &bytes).map(drop)
}

/// Writes the symbols of a system's images where a debugger finds them by program name; returns the folder.
///
/// # Errors
/// The system cannot be read, or an image differs from the one with line tables.
pub fn write_images(
    repository: &Repository,
    system: &Path,
    with_lines: &BTreeMap<String, PathBuf>,
) -> Outcome<PathBuf> {
    let bytes = std::fs::read(system).map_err(|error| Failure::file("read", system, &error))?;
    let image = verified(&bytes, system)?;
    let folder = repository.output(&format!("debug/{}", image.manifest.name));
    write_packages(&folder, &image.packages, system, with_lines)?;
    Ok(folder)
}

/// Returns the packages of a system image; `path` is where it is.
///
/// # Errors
/// It is damaged.
pub fn verified<'a>(bytes: &'a [u8], path: &Path) -> Outcome<SystemImage<'a>> {
    package_check::verify_system(bytes).map_err(|error| broken(path, &error))
}

fn broken(path: &Path, error: &PackageError) -> Failure {
    Failure::new(format!("{}: {error}", path.display())).remedy("rebuild it")
}

/// Writes the symbols of packages into a folder; `path` is where they are.
///
/// # Errors
/// A package is damaged, or an image differs from the one with line tables.
pub fn write_packages(
    folder: &Path,
    packages: &[&[u8]],
    path: &Path,
    with_lines: &BTreeMap<String, PathBuf>,
) -> Outcome<()> {
    for bytes in packages {
        let delivery = Delivery::parse(bytes).map_err(|error| broken(path, &error.into()))?;
        let image = delivery.image();
        // A script has no functions.
        let functions = symbols::functions(image).unwrap_or_default();
        let name = &delivery.package.manifest.name;
        write_if_changed(&folder.join(name), &symbols::file(&functions))?;
        write_lines(&folder.join(format!("{name}{LINES}")), image, with_lines.get(name))?;
    }
    Ok(())
}

/// Paths used by gdb.
struct Files<'a> {
    /// The kernel with its symbols.
    kernel: &'a Path,
    /// Root of the kernel's sources; its line tables are relative to it.
    sources: &'a Path,
    /// Folder of the images' symbols.
    images: &'a Path,
    /// The socket at which the machine waits.
    socket: &'a Path,
}

/// Returns a path that the languages of debuggers take as it is.
///
/// # Errors
/// It has a character with a meaning in one of them.
pub fn plain(path: &Path) -> Outcome<String> {
    match path.to_str() {
        Some(text) if !text.contains(['\'', '"', '\\', '\n', ' ']) => Ok(text.to_string()),
        _ => Err(Failure::new(format!("debuggers do not support the path {}", path.display()))
            .remedy("build in another folder")),
    }
}

/// Returns gdb's startup commands.
fn commands(files: &Files<'_>, batch: Option<&Path>) -> Outcome<String> {
    let Files { kernel, sources, images, socket } = files;
    let text = plain;
    let mut out = String::from(SETTINGS);
    out.push_str(ARCHITECTURE);
    // Writing to a String cannot fail.
    let _ = writeln!(out, "directory {}", text(sources)?);
    let _ = writeln!(out, "file \"{}\"", text(kernel)?);
    let _ = writeln!(out, "add-symbol-file {}/{KERNEL}", text(images)?);
    let _ = writeln!(out, "target remote {}", text(socket)?);
    let _ = writeln!(out, "python point, folder, lines = '{HARDWARE}', '{}', '{LINES}'", text(images)?);
    out.push_str(IMAGES);
    out.push_str(FRAMES);
    match batch {
        None => out.push_str("echo The machine waits before its first instruction; `continue` starts it.\\n\n"),
        Some(batch) => {
            let _ = writeln!(out, "python batch = '{}'", text(batch)?);
            out.push_str(BATCH);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gdb_is_told_of_symbols_before_its_commands() {
        let [kernel, sources, images, socket] = ["/k", "/s", "/i", "/d"].map(Path::new);
        let files = Files { kernel, sources, images, socket };
        let script = commands(&files, Some(Path::new("/b"))).expect("plain paths");
        assert!(
            script.contains(
                "directory /s\nfile \"/k\"\nadd-symbol-file /i/the.kernel\ntarget remote /d\npython point, folder, lines = 'BP_HARDWARE_BREAKPOINT', '/i', '.lines'\n"
            ),
            "{script}"
        );
        assert!(script.ends_with(&format!("end\npython batch = '/b'\n{BATCH}")), "{script}");
        assert!(commands(&files, None).expect("plain paths").ends_with("starts it.\\n\n"));
        assert!(commands(&Files { kernel: Path::new("/it's"), ..files }, None).is_err());
    }

    #[test]
    fn line_tables_of_other_code_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = std::env::current_exe().expect("this program has a path");
        let bytes = std::fs::read(&own).expect("and can be read");
        let lines = folder.path().join("cat.lines");
        write_lines(&lines, &bytes, Some(&own)).expect("the same code");
        assert!(lines.is_file());
        let mut other = bytes.clone();
        let first = code(&bytes).expect("code")[0].as_ptr();
        other[first as usize - bytes.as_ptr() as usize] ^= 1;
        let refused = write_lines(&lines, &other, Some(&own)).expect_err("another program");
        assert!(refused.to_string().contains("`cat`"), "{refused}");
        write_lines(&lines, &bytes, None).expect("nothing to show");
        assert!(!lines.exists());
    }
}
