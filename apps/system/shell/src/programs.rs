//! The installed programs.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use manifest_model::{Category, Code, Manifest, ParameterKind, Source};

/// Installed programs by name.
pub struct Programs {
    manifests: Vec<Rc<Manifest>>,
    /// Names of unsigned programs.
    unsigned: Vec<String>,
    /// Change counter of the installed programs when they were read.
    changes: u64,
}

/// Publisher key of an unsigned program.
const NOBODY: [u8; 32] = [0; 32];

impl Programs {
    /// Reads the manifests of all programs. An unreadable manifest is skipped: the program could not be started
    /// either.
    pub fn read() -> Programs {
        let changes = sip::diagnostics::program_changes();
        let (mut manifests, mut unsigned) = (Vec::new(), Vec::new());
        let all = (0..sip::diagnostics::program_count()).map(sip::diagnostics::program_and_key);
        for (bytes, key) in all.filter_map(Result::ok) {
            let Ok(manifest) = Manifest::decode(&bytes) else { continue };
            if key == NOBODY {
                unsigned.push(manifest.name.clone());
            }
            manifests.push(Rc::new(manifest));
        }
        manifests.sort_by(|left, right| left.name.cmp(&right.name));
        Programs { manifests, unsigned, changes }
    }

    /// Rereads them if programs were installed or removed.
    pub fn refresh(&mut self) {
        if sip::diagnostics::program_changes() != self.changes {
            *self = Programs::read();
        }
    }

    /// Returns the program of this name.
    pub fn find(&self, name: &str) -> Option<Rc<Manifest>> {
        let index = self.manifests.binary_search_by(|manifest| manifest.name.as_str().cmp(name)).ok()?;
        self.manifests.get(index).cloned()
    }

    /// Whether the program is unsigned. The kernel refuses to start it; a script is never started by the kernel.
    pub fn is_unsigned(&self, name: &str) -> bool {
        self.unsigned.iter().any(|unsigned| unsigned == name)
    }

    /// Programs intended for people, sorted by name.
    pub fn for_people(&self) -> impl Iterator<Item = &Manifest> {
        let by_the_system = [Category::Driver, Category::Service, Category::WebApplication];
        let shown =
            move |manifest: &&Rc<Manifest>| !by_the_system.contains(&manifest.category) && !manifest.code.is_template();
        self.manifests.iter().filter(shown).map(Rc::as_ref)
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.manifests.iter().map(|manifest| manifest.name.as_str())
    }
}

/// Returns the commands of a script program.
pub fn script_of(manifest: &Manifest) -> Option<&str> {
    match &manifest.code {
        Code::Script { text } => Some(text),
        _ => None,
    }
}

/// Whether the program reads its standard input.
pub fn reads_input(manifest: &Manifest) -> bool {
    manifest.endpoints.iter().any(|slot| slot.source == Source::StandardInput)
}

/// Whether the program writes to its standard output.
pub fn writes_output(manifest: &Manifest) -> bool {
    manifest.endpoints.iter().any(|slot| slot.source == Source::StandardOutput)
}

/// Whether the program's last positional was given: it has its input and needs no standard input.
pub fn has_last_position(manifest: &Manifest, assigned: &[(usize, Vec<u8>)]) -> bool {
    let position = |index: usize| manifest.parameters.get(index).and_then(|parameter| parameter.position);
    let last = manifest.parameters.iter().filter_map(|parameter| parameter.position).max();
    last.is_some() && assigned.iter().any(|(index, _)| position(*index) == last)
}

/// Name of the parameter that receives the shell's working folder.
pub const WORKING_FOLDER: &str = "working-folder";

/// Returns the index of that parameter, if the program has it.
pub fn working_folder_index(manifest: &Manifest) -> Option<usize> {
    let (index, parameter) = manifest.parameter(WORKING_FOLDER)?;
    (parameter.kind == ParameterKind::Text && !parameter.repeated).then_some(index)
}

/// Returns the variables that hold a script program's parameters: by name, with `_` for `-`.
pub fn script_variables(manifest: &Manifest, assigned: &[(usize, Vec<u8>)]) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for (index, parameter) in manifest.parameters.iter().enumerate() {
        let given = assigned.iter().find(|(number, _)| *number == index).map(|(_, bytes)| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            if parameter.repeated { text.trim_end_matches('\0').replace('\0', " ") } else { text }
        });
        let value = given.or_else(|| parameter.default.as_ref().map(|value| alloc::format!("{value}")));
        if let Some(value) = value {
            variables.push((parameter.name.replace('-', "_"), value));
        }
    }
    variables
}

/// Returns `$1` and so on of a script program: the values of its positionals, in order.
pub fn script_arguments(manifest: &Manifest, assigned: &[(usize, Vec<u8>)]) -> Vec<String> {
    let mut placed: Vec<(u16, &[u8], bool)> = assigned
        .iter()
        .filter_map(|(index, bytes)| {
            let parameter = manifest.parameters.get(*index)?;
            Some((parameter.position?, bytes.as_slice(), parameter.repeated))
        })
        .collect();
    placed.sort_by_key(|(position, ..)| *position);
    let mut arguments = Vec::new();
    for (_, bytes, repeated) in placed {
        let text = String::from_utf8_lossy(bytes);
        if repeated {
            // Each value is terminated by a zero byte.
            arguments.extend(text.strip_suffix('\0').unwrap_or(&text).split('\0').map(String::from));
        } else {
            arguments.push(text.into_owned());
        }
    }
    arguments
}
