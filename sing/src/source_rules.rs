//! Rules for each crate of this repository that takes part in building an image, checked before anything is compiled.
//!
//! Trust is by location: the few crates that may contain unsafe code or run during the build are those in the folders
//! of [`TRUSTED`], whatever names others use. Neighbours: `dependencies` has the rules for external crates,
//! `source_words` those for single files, `compiled_sources` checks after the build that no other files were read.
//! Deliberately not here: rules for a file's content.

use std::path::{Component, Path, PathBuf};

use crate::attributes;
use crate::bill;
use crate::cargo::{Metadata, Node, Package};
use crate::repository::Repository;
use crate::source_words;

/// A crate of this repository in the trusted base of images.
pub struct Trusted {
    /// Its folder.
    pub folder: &'static str,
    /// The name by which generated code refers to it, reserved for it.
    pub name: &'static str,
    /// Folders of the crates that may use it; empty if any may.
    used_by: &'static [&'static str],
}

/// The runtime, its entry for C code, virtio adapter and host of WebAssembly, the procedural macros with their code generators, and the assembly that replaces
/// a C library. None has a feature that an image may enable.
const TRUSTED: [Trusted; 8] = [
    Trusted { folder: "sip", name: "sip", used_by: &[] },
    // Only the entry stubs of programs with C code.
    Trusted { folder: "sip/c", name: "sip_c", used_by: &["entry stubs"] },
    Trusted { folder: "sip/macros", name: "sip_macros", used_by: &["sip"] },
    Trusted { folder: "sip/virtio", name: "sip_virtio", used_by: &[] },
    Trusted { folder: "sip/wasm", name: "sip_wasm", used_by: &TEMPLATES },
    Trusted { folder: "lib/layout-macros", name: "layout_macros", used_by: &["lib/layout"] },
    Trusted { folder: "lib/reflection", name: "reflection", used_by: &REFLECTED },
    Trusted { folder: "lib/memory-functions", name: "memory_functions", used_by: &["sip"] },
];
/// Templates of WebAssembly programs and their entry stubs.
const TEMPLATES: [&str; 3] = ["entry stubs", "templates/wasi", "templates/wasm-spec"];
/// Procedural macros, and the manifest parser behind one of them.
const REFLECTED: [&str; 3] = ["sip/macros", "lib/layout-macros", "lib/manifest"];
/// Other crates that generated code refers to by name.
const CALLED_BY_NAME: [(&str, &str); 3] = [("abi", "abi"), ("lib/layout", "layout"), ("contracts", "contracts")];
/// Crates bundled with the compiler; a crate with one of these names would shadow it in macro output.
const OF_THE_COMPILER: [&str; 5] = ["core", "alloc", "std", "proc_macro", "test"];
/// Library kinds that a program can link.
const LINKED: [&str; 2] = ["lib", "rlib"];
/// The edition in which attributes that name a symbol require `unsafe`.
const EDITION: &str = "2024";

/// Returns the trusted crate in a folder.
pub fn trusted(repository: &Repository, folder: &Path) -> Option<&'static Trusted> {
    let folder = place(repository.base(), folder)?;
    TRUSTED.iter().find(|trusted| Path::new(trusted.folder) == folder)
}

/// Returns a folder's path relative to the workspace, if it lies there and not behind a symbolic link.
fn place(workspace: &Path, folder: &Path) -> Option<PathBuf> {
    let root = workspace.canonicalize().ok()?;
    let within = folder.strip_prefix(workspace).or_else(|_| folder.strip_prefix(&root)).ok()?;
    let is_real = folder.canonicalize().is_ok_and(|real| real == root.join(within));
    is_real.then(|| within.to_path_buf())
}

/// Whether a crate must be safe code; the stricter is the lesser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// It must forbid unsafe code.
    Safe,
    /// It belongs to a program that attacks the system in a test, or that runs in a hardware domain of its own.
    Unsafe,
}

/// Checks a crate of a folder.
pub fn complaint(package: &Package, metadata: &Metadata, repository: &Repository, code: Code) -> Option<String> {
    let shown = repository.shown(package.folder());
    if repository.workspaces().iter().all(|workspace| place(workspace, package.folder()).is_none()) {
        return Some(format!("crate {} lies outside the repository, in {shown}", package.name));
    }
    if package.has_target("custom-build") {
        return Some(format!("{shown} has a build script, which image crates may not have"));
    }
    if trusted(repository, package.folder()).is_some() {
        let features = metadata.node(&package.id).map_or(&[][..], |node| &node.features);
        let feature = features.first()?;
        return Some(format!("{shown} enables the feature `{feature}`, which images may not enable"));
    }
    library_complaint(package, repository, code)
}

fn library_complaint(package: &Package, repository: &Repository, code: Code) -> Option<String> {
    let shown = repository.shown(package.folder());
    let Some(library) = package.library() else {
        return Some(format!("{shown} has no library target; image crates are libraries"));
    };
    if library.kind.iter().any(|kind| kind == "proc-macro") {
        return Some(format!("{shown} is a procedural macro, which image crates may not be"));
    }
    if let Some(kind) = library.kind.iter().find(|kind| !LINKED.contains(&kind.as_str())) {
        return Some(format!("{shown} is a library of the kind `{kind}`; image crates must be `lib`"));
    }
    if is_reserved(&library.name, package, repository) {
        return Some(format!("{shown} names its library `{}`, which is reserved for generated code", library.name));
    }
    if code == Code::Unsafe {
        return None;
    }
    if package.edition != EDITION {
        return Some(format!("{shown} has edition {}; image crates must have edition {EDITION}", package.edition));
    }
    source_complaint(package, &library.src_path, repository)
}

/// Returns whether generated code uses this name for a crate other than the package.
fn is_reserved(name: &str, package: &Package, repository: &Repository) -> bool {
    let folders = TRUSTED.iter().map(|trusted| (trusted.folder, trusted.name)).chain(CALLED_BY_NAME);
    OF_THE_COMPILER.contains(&name)
        || folders
            .filter(|(_, reserved)| *reserved == name)
            .any(|(folder, _)| place(repository.base(), package.folder()).as_deref() != Some(Path::new(folder)))
}

/// Checks a crate's sources, as far as possible before compilation.
fn source_complaint(package: &Package, root: &Path, repository: &Repository) -> Option<String> {
    let shown = repository.shown(root);
    if !lies_in(root, package.folder()) {
        return Some(format!("{shown} is missing or outside the crate's folder"));
    }
    let Ok(source) = std::fs::read_to_string(root) else {
        return Some(format!("{shown} cannot be read as text"));
    };
    if !attributes::forbids_unsafe(&attributes::inner_attributes(&source)) {
        return Some(format!("{shown} lacks #![forbid(unsafe_code)]"));
    }
    let mut files = Vec::new();
    if let Err(error) = collect(package.folder(), &mut files) {
        return Some(format!("cannot read the files beside {shown}: {error}"));
    }
    // rustc lists the files that it read one per line.
    if let Some(file) = files.iter().find(|file| file.as_os_str().as_encoded_bytes().iter().any(u8::is_ascii_control)) {
        return Some(format!("{:?} has a control character in its name", repository.shown(file).to_string()));
    }
    let covered = |file: &&PathBuf| file.strip_prefix(package.folder()).is_ok_and(bill::covers);
    if let Some(file) = files.iter().filter(covered).find(|file| !is_file(file)) {
        let shown = repository.shown(file);
        return Some(format!("{shown} is a symbolic link or special file; replace it by a regular file"));
    }
    let beside = root.parent()?;
    files.retain(|file| file.starts_with(beside) && file.extension().is_some_and(|extension| extension == "rs"));
    files.push(root.to_path_buf());
    files.sort();
    files.dedup();
    files.iter().find_map(|file| file_complaint(file, repository))
}

/// Returns whether a file exists below the folder, and not behind a symbolic link.
pub fn lies_in(file: &Path, folder: &Path) -> bool {
    place_in(file, folder).is_some()
}

/// Returns a file's path within the folder, without `..`, if the file exists and is not behind a symbolic link.
pub fn place_in(file: &Path, folder: &Path) -> Option<PathBuf> {
    let mut place = PathBuf::new();
    for part in file.strip_prefix(folder).ok()?.components() {
        match part {
            Component::Normal(name) => place.push(name),
            Component::ParentDir if place.pop() => {}
            _ => return None,
        }
    }
    // Resolve the real location: `a/..` is another folder if `a` is a link.
    (file.canonicalize().ok()? == folder.canonicalize().ok()?.join(&place)).then_some(place)
}

/// Checks a source file.
pub fn file_complaint(file: &Path, repository: &Repository) -> Option<String> {
    let shown = repository.shown(file);
    match std::fs::read_to_string(file) {
        Ok(source) => source_words::complaint(&source).map(|(line, what)| format!("{shown}:{line} {what}")),
        Err(error) => Some(format!("cannot read {shown} as text: {error}")),
    }
}

/// Returns whether a path is a regular file, not a link, a device or a pipe.
fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file())
}

/// Collects the files at and below a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => collect(&entry.path(), files)?,
            false => files.push(entry.path()),
        }
    }
    Ok(())
}

/// Checks how a crate of this repository uses other packages: trusted ones have designated users, and no package may
/// be renamed, because the output of audited macros refers to crates by name.
pub fn edge_complaints(user: &Package, node: &Node, metadata: &Metadata, repository: &Repository) -> Vec<String> {
    let shown = repository.shown(user.folder());
    let mut complaints = Vec::new();
    for edge in node.deps.iter().filter(|edge| edge.is_built()) {
        let Some(used) = metadata.packages.iter().find(|package| package.id == edge.pkg) else { continue };
        if used.library().is_none_or(|library| library.name != edge.name) {
            complaints.push(format!(
                "{shown} renames the crate {} to `{}`; image crates may not be renamed",
                used.name, edge.name
            ));
        }
        if used.source.is_some() {
            continue;
        }
        let Some(trusted) = trusted(repository, used.folder()).filter(|trusted| !trusted.used_by.is_empty()) else {
            continue;
        };
        let place = place(repository.base(), user.folder());
        if !trusted.used_by.iter().any(|folder| place.as_deref() == Some(Path::new(folder))) {
            complaints.push(format!("{shown} uses {}, which only {} may", trusted.folder, trusted.used_by.join(", ")));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_by_place() {
        let repository = Repository::find().expect("tests run inside the repository");
        for trusted_crate in &TRUSTED {
            let folder = repository.root().join(trusted_crate.folder);
            assert!(folder.join("Cargo.toml").is_file(), "{}", folder.display());
            assert!(trusted(&repository, &folder).is_some_and(|found| found.name == trusted_crate.name));
        }
        for other in ["apps/sip", "apps/echo/sip", "lib/fat", "apps/../sip"] {
            assert!(trusted(&repository, &repository.root().join(other)).is_none(), "{other}");
        }
        assert!(trusted(&repository, Path::new("/sip")).is_none());
    }

    #[test]
    fn a_source_is_text_and_lies_in_the_folder() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |name: &str, content: &[u8]| {
            let path = root.path().join(name);
            std::fs::write(&path, content).expect("a file");
            path
        };
        let repository = Repository::of_tests(root.path());
        let complaint = file_complaint(&write("a.rs", b"// \xff\n"), &repository);
        assert!(complaint.is_some_and(|complaint| complaint.starts_with("cannot read a.rs as text")));
        let clean = write("b.rs", b"fn b() {}\n");
        assert_eq!(file_complaint(&clean, &repository), None);
        std::fs::create_dir(root.path().join("inner")).expect("a folder");
        let link = root.path().join("inner/b.rs");
        std::os::unix::fs::symlink(&clean, &link).expect("a link");
        assert!(lies_in(&clean, root.path()) && !lies_in(&link, &root.path().join("inner")));
        assert!(!lies_in(&clean, &root.path().join("inner")));
        assert_eq!(place_in(&root.path().join("inner/../b.rs"), root.path()), Some("b.rs".into()));
        assert!(!lies_in(&root.path().join("inner/../b.rs"), &root.path().join("inner")));
        std::fs::create_dir(root.path().join("inner/deep")).expect("a folder");
        std::os::unix::fs::symlink(root.path().join("inner/deep"), root.path().join("other")).expect("a link");
        std::fs::write(root.path().join("inner/b.rs.real"), "").expect("a file");
        write("b.rs.real", b"");
        assert!(!lies_in(&root.path().join("other/../b.rs.real"), root.path()), "the link leads elsewhere");
    }

    #[test]
    fn no_file_is_a_link_or_has_a_control_character_in_its_name() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |name: &str, content: &str| std::fs::write(root.path().join(name), content).expect("a file");
        write("Cargo.toml", "");
        write("lib.rs", "#![forbid(unsafe_code)]\n");
        let package = Package {
            id: "x".into(),
            name: "x".into(),
            version: "1.0.0".into(),
            license: None,
            source: None,
            manifest_path: root.path().join("Cargo.toml"),
            edition: EDITION.into(),
            targets: Vec::new(),
            dependencies: Vec::new(),
        };
        let repository = Repository::of_tests(root.path());
        let complaint = || source_complaint(&package, &root.path().join("lib.rs"), &repository);
        assert_eq!(complaint(), None);
        for target in ["lib.rs", "/dev/zero", ".", "nowhere"] {
            let link = root.path().join("link");
            std::os::unix::fs::symlink(target, &link).expect("a link");
            assert!(complaint().is_some_and(|complaint| complaint.contains("link is a symbolic link")), "{target}");
            // Editor files are ignored.
            std::fs::rename(&link, root.path().join(".link")).expect("another name");
            assert_eq!(complaint(), None);
        }
        write("x:\n", "");
        assert!(complaint().is_some_and(|complaint| complaint.contains("\"x:\\n\" has a control character")));
    }

    #[test]
    fn a_link_in_the_repository_to_another_place_is_outside() {
        let root = tempfile::tempdir().expect("a folder");
        let other = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(root.path().join("abi/src")).expect("a folder");
        for file in ["abi/src/table.rs", "Cargo.toml"] {
            std::fs::write(root.path().join(file), "").expect("a file");
        }
        let repository = Repository::of_tests(root.path());
        std::os::unix::fs::symlink(other.path(), root.path().join("sip")).expect("a link");
        assert_eq!(place(repository.base(), &root.path().join("sip")), None);
        assert_eq!(place(repository.base(), &root.path().join("abi")), Some(PathBuf::from("abi")));
    }
}
