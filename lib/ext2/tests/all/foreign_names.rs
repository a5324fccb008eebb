//! Names of arbitrary bytes on a volume, looked up by their text, against a map from text to bytes as a model.

use std::collections::BTreeMap;

use crate::support::{self, AnyDisk, FileDisk, has_tool, run};
use ext2::{LastLink, MountOptions, NewKind, NewNode, ROOT_INODE, Volume, complete};
use name_text::{ESCAPE_BYTES, from_text, to_text};
use proptest::prelude::*;

/// Names accepted by Linux: up to 255 bytes, any but `/` and zero, many of them escapes or parts of escapes.
fn names() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let piece = prop_oneof![
        3 => any::<u8>().prop_filter("no separator", |byte| !matches!(byte, 0 | b'/')).prop_map(|byte| vec![byte]),
        3 => (0x80..=0xffu8).prop_map(|byte| vec![byte]),
        3 => (0x80..=0xffu8).prop_map(|byte| format!("\\x{byte:02x}").into_bytes()),
        2 => prop::sample::select(vec!["\\", "\\x5c", "\\x", "é", "x", "5c", "e9"]).prop_map(Vec::from),
    ];
    let name = prop::collection::vec(piece, 1..12)
        .prop_map(|pieces| pieces.concat())
        .prop_filter("no dots", |name| !matches!(&name[..], b"." | b".." | b"lost+found"));
    let long = (0x80..=0xffu8).prop_map(|byte| vec![byte; 255]);
    prop::collection::vec(prop_oneof![20 => name, 1 => long], 1..40)
}

type Files = BTreeMap<String, Vec<u8>>;

/// Returns all names of the root folder by their text.
fn listed(volume: &Volume<AnyDisk>) -> Files {
    let (mut found, mut position) = (BTreeMap::new(), 0);
    loop {
        let listing = complete(volume.list(ROOT_INODE, position, 7)).unwrap();
        for entry in
            listing.entries.into_iter().filter(|entry| !matches!(&entry.name[..], b"." | b".." | b"lost+found"))
        {
            assert!(found.insert(to_text(&entry.name).into_owned(), entry.name).is_none(), "a text is there twice");
        }
        match listing.next {
            Some(next) => position = next,
            None => return found,
        }
    }
}

fn make(volume: &Volume<AnyDisk>, names: &[Vec<u8>]) -> Files {
    let mut model = Files::new();
    for name in names {
        let text = to_text(name).into_owned();
        assert!(text.len() <= ESCAPE_BYTES * 255);
        let node = NewNode { kind: NewKind::File, permissions: 0o644, owner: 0, group: 0 };
        let made = complete(volume.create(ROOT_INODE, &from_text(&text).unwrap(), node));
        assert_eq!(made.is_ok(), model.insert(text.clone(), name.clone()).is_none(), "{text}: {made:?}");
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_name_is_made_listed_found_and_removed_by_its_text(names in names()) {
        if !has_tool("mke2fs") {
            return Ok(());
        }
        let place = support::folder();
        let image = place.path().join("image");
        run("mke2fs", &["-q", "-F", "-t", "ext2", image.to_str().unwrap(), "2M"]);
        let volume = complete(Volume::mount(FileDisk::open_to_write(&image), MountOptions::default())).unwrap();
        let mut model = make(&volume, &names);
        prop_assert_eq!(&listed(&volume), &model);
        complete(volume.unmount()).unwrap();
        drop(volume);
        run("e2fsck", &["-fn", image.to_str().unwrap()]);

        let volume = complete(Volume::mount(FileDisk::open_to_write(&image), MountOptions::default())).unwrap();
        while let Some((text, name)) = model.pop_first() {
            let path = from_text(&text).unwrap();
            prop_assert_eq!(&path[..], &name[..]);
            complete(volume.resolve(ROOT_INODE, &path, LastLink::Keep)).unwrap();
            complete(volume.unlink(ROOT_INODE, &path)).unwrap();
            prop_assert_eq!(&listed(&volume), &model);
        }
        complete(volume.unmount()).unwrap();
        drop(volume);
        run("e2fsck", &["-fn", image.to_str().unwrap()]);
    }
}
