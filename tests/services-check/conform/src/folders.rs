//! Checks of the contract `Directory`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::directory::{CreateMode, NameError, NodeChanges, NodeKind, NodeParts};
use contracts::file::FileError;
use sip::exheap::ExVec;

use crate::suite::{Done, Suite};

/// More names than fit a page.
const MANY: usize = 300;
const NEW_PERMISSIONS: u32 = 0o644;

fn name(error: NameError) -> Done {
    Err(AccessError::Name(error))
}

fn file(error: FileError) -> Done {
    Err(AccessError::File(error))
}

/// Runs all checks, and leaves the folder empty.
///
/// # Errors
///
/// The setup of a check failed.
pub fn check(suite: &mut Suite) -> Done {
    makes(suite)?;
    opens(suite);
    attributes(suite)?;
    renames(suite)?;
    removes(suite)?;
    lists(suite)
}

fn create(folder: &mut Namespace, path: &str, mode: CreateMode) -> Done {
    folder.create_own_file(path, NEW_PERMISSIONS, mode).map(drop)
}

/// Creates `d`, `d/below`, `f` with five bytes.
fn makes(suite: &mut Suite) -> Done {
    let folder = &mut suite.folder;
    folder.create_directory("d")?;
    let mut opened = folder.create_own_file("f", NEW_PERMISSIONS, CreateMode::New)?;
    opened.write_at(ExVec::from_slice(b"12345")?, 0, 5)?.all()?;
    let answers = [
        ("make a folder that is there", folder.create_directory("d"), name(NameError::AlreadyExists)),
        ("make a folder over a file", folder.create_directory("f"), name(NameError::AlreadyExists)),
        ("make a folder below a file", folder.create_directory("f/x"), name(NameError::NotADirectory)),
        ("make a folder and those on the way", folder.create_directory("d/way/below"), Ok(())),
        ("make the folder itself", folder.create_directory(""), name(NameError::AlreadyExists)),
        ("make a folder with a dot as its name", folder.create_directory("d/."), name(NameError::BadPath)),
        ("remove the folder itself", folder.remove_directory("d/."), name(NameError::NotPermitted)),
        ("create a file that is there", create(folder, "f", CreateMode::New), name(NameError::AlreadyExists)),
        ("create a file over a folder", create(folder, "d", CreateMode::New), name(NameError::AlreadyExists)),
        (
            "open a folder as a file that is there",
            create(folder, "d", CreateMode::OpenExisting),
            name(NameError::IsADirectory),
        ),
        ("create a file below none", create(folder, "none/x", CreateMode::New), name(NameError::NotFound)),
        ("create a file below a file", create(folder, "f/x", CreateMode::OpenExisting), name(NameError::NotADirectory)),
        ("create a file that is not there", create(folder, "d/made", CreateMode::OpenExisting), Ok(())),
        ("put a provider away", folder.deregister("f"), name(NameError::NotSupported)),
    ];
    for (what, answer, wanted) in answers {
        suite.expect(what, answer, wanted);
    }
    let mut again = suite.folder.create_own_file("f", NEW_PERMISSIONS, CreateMode::OpenExisting)?;
    suite.expect("the size of a file that was opened", again.attributes()?.size_bytes, 5);
    suite.folder.remove_directory("d/way/below")?;
    suite.folder.remove_directory("d/way")?;
    suite.folder.remove_file("d/made")
}

fn opens(suite: &mut Suite) {
    let folder = &mut suite.folder;
    let answers = [
        ("open a folder as a file", folder.open_file("d").map(drop), file(FileError::IsADirectory)),
        ("open a file that is not there", folder.open_file("none").map(drop), file(FileError::NotFound)),
        ("open a file below a file", folder.open_file("f/x").map(drop), file(FileError::NotADirectory)),
        ("open a file through `..`", folder.open_file("d/../f").map(drop), file(FileError::BadPath)),
        ("open a file as a folder", folder.open_directory("f").map(drop), name(NameError::NotADirectory)),
        ("open a folder that is not there", folder.open_directory("none").map(drop), name(NameError::NotFound)),
        ("open the folder itself", folder.open_directory("").map(drop), Ok(())),
        ("open a folder with a slash at its end", folder.open_directory("d/").map(drop), Ok(())),
    ];
    for (what, answer, wanted) in answers {
        suite.expect(what, answer, wanted);
    }
}

fn attributes(suite: &mut Suite) -> Done {
    let folder = &mut suite.folder;
    let kind = |folder: &mut Namespace, path: &str| folder.own_attributes(path).map(|(kind, _)| kind);
    let answers = [
        ("the kind of a file", kind(folder, "f"), Ok(NodeKind::File)),
        ("the kind of a folder", kind(folder, "d"), Ok(NodeKind::Directory)),
        ("the kind of the folder itself", kind(folder, ""), Ok(NodeKind::Directory)),
        ("the kind of nothing", kind(folder, "none"), Err(AccessError::Name(NameError::NotFound))),
        ("the kind of what is below a file", kind(folder, "f/x"), Err(AccessError::Name(NameError::NotADirectory))),
    ];
    for (what, answer, wanted) in answers {
        suite.expect(what, answer, wanted);
    }
    let folder = &mut suite.folder;
    let link = folder.read_link("f").map(drop);
    let changes = NodeChanges {
        modified_s: 1_000_000_000,
        accessed_s: 0,
        permissions: 0o444,
        owner: 0,
        group: 0,
        which: NodeParts::PERMISSIONS | NodeParts::MODIFIED,
    };
    folder.set_attributes("f", changes)?;
    let (_, known) = folder.own_attributes("f")?;
    folder.set_attributes("f", NodeChanges { permissions: 0o644, which: NodeParts::PERMISSIONS, ..changes })?;
    let missing = folder.set_attributes("none", changes);
    suite.expect("where a file leads", link, name(NameError::NotSupported));
    suite.expect(
        "what was set",
        (known.modified_s, known.permissions & 0o222, known.size_bytes),
        (1_000_000_000, 0, 5),
    );
    suite.expect("set attributes of nothing", missing, name(NameError::NotFound));
    Ok(())
}

fn renames(suite: &mut Suite) -> Done {
    let folder = &mut suite.folder;
    folder.create_directory("full/below")?;
    folder.create_directory("empty")?;
    create(folder, "other", CreateMode::New)?;
    let answers = [
        ("rename nothing", folder.rename("none", "x"), name(NameError::NotFound)),
        ("rename into a folder that is not there", folder.rename("f", "none/x"), name(NameError::NotFound)),
        ("rename to itself", folder.rename("f", "f"), Ok(())),
        ("rename a file over a folder", folder.rename("f", "empty"), name(NameError::IsADirectory)),
        ("rename a folder over a file", folder.rename("empty", "f"), name(NameError::NotADirectory)),
        ("rename a folder over one with names", folder.rename("empty", "full"), name(NameError::NotEmpty)),
        ("rename a folder into itself", folder.rename("full", "full/below/x"), name(NameError::IntoItself)),
        ("rename a folder over an empty one", folder.rename("full", "empty"), Ok(())),
        ("rename a file over a file", folder.rename("f", "other"), Ok(())),
        ("rename into another folder", folder.rename("other", "empty/f"), Ok(())),
        ("rename back", folder.rename("empty/f", "f"), Ok(())),
    ];
    for (what, answer, wanted) in answers {
        suite.expect(what, answer, wanted);
    }
    let size = suite.folder.own_attributes("f").map(|(_, known)| known.size_bytes);
    suite.expect("the size of what was renamed", size, Ok(5));
    suite.folder.remove_directory("empty/below")?;
    suite.folder.remove_directory("empty")
}

fn removes(suite: &mut Suite) -> Done {
    let folder = &mut suite.folder;
    create(folder, "d/in", CreateMode::New)?;
    let answers = [
        ("remove a folder as a file", folder.remove_file("d"), name(NameError::IsADirectory)),
        ("remove a file as a folder", folder.remove_directory("f"), name(NameError::NotADirectory)),
        ("remove a folder with names", folder.remove_directory("d"), name(NameError::NotEmpty)),
        ("remove a file that is not there", folder.remove_file("none"), name(NameError::NotFound)),
        ("remove a folder that is not there", folder.remove_directory("none"), name(NameError::NotFound)),
        ("remove a file", folder.remove_file("d/in"), Ok(())),
        ("remove a folder", folder.remove_directory("d"), Ok(())),
        ("remove another file", folder.remove_file("f"), Ok(())),
        ("sync", folder.sync(), Ok(())),
    ];
    for (what, answer, wanted) in answers {
        suite.expect(what, answer, wanted);
    }
    Ok(())
}

fn lists(suite: &mut Suite) -> Done {
    let folder = &mut suite.folder;
    let mut wanted: Vec<String> = (0..MANY).map(|number| format!("a name of some length {number:03}")).collect();
    for name in &wanted {
        create(folder, name, CreateMode::New)?;
    }
    let found: Vec<String> = folder.names("")?.iter().map(client::namespace::Name::text).collect();
    let listed_file = folder.names(&wanted[0]).map(drop);
    for name in &wanted {
        folder.remove_file(name)?;
    }
    wanted.sort();
    let left = folder.names("")?.len();
    suite.expect("how many names a folder has", found.len(), MANY);
    suite.expect("which names a folder has", found == wanted, true);
    suite.expect("the names in a file", listed_file, name(NameError::NotADirectory));
    suite.expect("the names of an empty folder", left, 0);
    Ok(())
}
