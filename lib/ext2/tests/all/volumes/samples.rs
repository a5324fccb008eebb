//! Intact volumes with every kind of node.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use ext2::complete;
use ext2::make::{MakeOptions, Style, make_empty};

use super::{Disk, e2fsck, run};

/// A volume with every kind of node, created by Linux's tools.
pub struct Sample {
    pub name: String,
    pub image: Vec<u8>,
}

fn content(folder: &Path) {
    fs::create_dir_all(folder.join("folder/inner/deep")).unwrap();
    fs::create_dir(folder.join("big")).unwrap();
    fs::write(folder.join("file"), vec![7; 700_000]).unwrap();
    fs::write(folder.join("small"), b"small").unwrap();
    fs::write(folder.join("other"), vec![9; 20_000]).unwrap();
    fs::write(folder.join("empty"), b"").unwrap();
    fs::write(folder.join("folder/one"), b"one").unwrap();
    fs::write(folder.join("folder/two"), b"two").unwrap();
    fs::write(folder.join("folder/inner/three"), vec![1; 5000]).unwrap();
    fs::hard_link(folder.join("small"), folder.join("folder/again")).unwrap();
    symlink("small", folder.join("link")).unwrap();
    symlink(format!("{}small", "./".repeat(60)), folder.join("long-link")).unwrap();
    for index in 0..300 {
        fs::write(folder.join(format!("big/a-file-with-a-name-{index:03}")), b"").unwrap();
    }
}

/// Nodes that mke2fs does not copy.
const MORE: &str = "mknod pipe p\nmknod device c 1 3\nea_set file user.name value\nea_set other user.one ";

pub fn debugfs(image: &Path, commands: &str) {
    let script = image.with_extension("commands");
    fs::write(&script, commands).unwrap();
    let (text, _) = run("debugfs", &["-w", "-f", script.to_str().unwrap(), image.to_str().unwrap()]);
    for wrong in ["rror", "not found", "sage:", "nvalid", "nknown", "No free", "annot"] {
        assert!(!text.contains(wrong), "{commands}: {text}");
    }
}

/// All samples, with a few groups each.
pub fn samples(place: &Path) -> Vec<Sample> {
    made(
        place,
        "20M",
        &[
            ("usual", &["-b", "1024"]),
            ("4k", &["-b", "4096"]),
            ("plain", &["-b", "1024", "-r", "0"]),
            ("journal", &["-b", "1024", "-j"]),
            ("own", &[]),
            ("own plain", &[]),
        ],
    )
}

/// Small samples, of which many can be tested.
pub fn small_samples(place: &Path) -> Vec<Sample> {
    made(
        place,
        "4M",
        &[
            ("usual", &["-b", "1024", "-g", "1024", "-N", "512"]),
            ("2k", &["-b", "2048", "-O", "^resize_inode", "-N", "400"]),
            ("plain", &["-b", "1024", "-r", "0", "-g", "1024", "-N", "512"]),
            ("journal", &["-b", "1024", "-j", "-J", "size=1", "-N", "400"]),
            ("own", &[]),
        ],
    )
}

fn made(place: &Path, size: &str, styles: &[(&str, &[&str])]) -> Vec<Sample> {
    let folder = place.join("content");
    content(&folder);
    let image = place.join("sample");
    let mut samples = Vec::new();
    for &(name, options) in styles {
        if options.is_empty() {
            make_own(&image, name, &folder);
        } else {
            let mut arguments = vec!["-q", "-F", "-t", "ext2"];
            arguments.extend_from_slice(options);
            arguments.extend_from_slice(&["-d", folder.to_str().unwrap(), image.to_str().unwrap(), size]);
            let (text, good) = run("mke2fs", &arguments);
            assert!(good, "{text}");
        }
        let attributes = if name.contains("plain") { String::new() } else { format!("{}{}", MORE, "v".repeat(300)) };
        debugfs(&image, &attributes);
        // Creates indexes.
        let status = Command::new("e2fsck").args(["-fyD", image.to_str().unwrap()]).output().unwrap().status;
        assert!(matches!(status.code(), Some(0 | 1)), "{name}");
        e2fsck(&image).unwrap();
        samples.push(Sample { name: name.to_string(), image: fs::read(&image).unwrap() });
        fs::remove_file(&image).unwrap();
    }
    samples
}

/// Creates a volume that was formatted here and filled by Linux's debugger.
fn make_own(image: &Path, name: &str, folder: &Path) {
    let disk = Disk::used(20 << 20);
    let style = if name == "own" { Style::Usual } else { Style::Plain };
    let options =
        MakeOptions { block_bytes: Some(1024), style, uuid: [3; 16], hash_seed: [4; 16], ..Default::default() };
    complete(make_empty(&disk.any(), &options)).unwrap();
    disk.save(image);
    let mut script = String::from("mkdir folder\nmkdir folder/inner\nmkdir folder/inner/deep\nmkdir big\n");
    for file in ["file", "small", "other", "empty", "folder/one", "folder/two", "folder/inner/three"] {
        script += &format!("write {} {file}\n", folder.join(file).display());
    }
    script += "ln small folder/again\nsif small links_count 2\nsymlink link small\n";
    script += &format!("symlink long-link {}small\n", "./".repeat(60));
    debugfs(image, &script);
}
