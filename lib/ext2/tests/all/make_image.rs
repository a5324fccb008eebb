//! Images built here match their description, both for this reader and for Linux's tools.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use crate::support::{self, AnyDisk, content, has_tool, mount, names, noise, read, resolve, run};
use ext2::make::{Attributes, File, Folder, Foreign, ImageError, ImageOptions, ImageSink, Link, Node, make_image};
use ext2::{Kind, MemoryDisk, MountOptions, Volume, complete};

const MADE: u32 = 1_700_000_000;

fn options(block_bytes: u32, volume_bytes: u64) -> ImageOptions {
    ImageOptions {
        block_bytes,
        volume_bytes,
        inodes: None,
        label: *b"demo\0\0\0\0\0\0\0\0\0\0\0\0",
        uuid: *b"a demo disk here",
        made: MADE,
    }
}

fn folder(entries: impl IntoIterator<Item = (Vec<u8>, Node)>) -> Folder {
    Folder { attributes: Attributes::searchable(MADE), entries: entries.into_iter().collect() }
}

fn file(bytes: Vec<u8>) -> Node {
    Node::File(File::with_bytes(Attributes::readable(MADE), bytes))
}

fn link(target: &[u8]) -> Node {
    Node::Link(Link { attributes: Attributes::readable(MADE), target: target.to_vec() })
}

/// Sizes around each boundary between levels of indirect blocks, for every block size.
fn sizes() -> Vec<usize> {
    let mut sizes = vec![0, 1, 1023, 1024, 1025, 4097];
    for block in [1024, 2048, 4096] {
        for blocks in [12, 12 + block / 4] {
            sizes.extend([blocks * block, blocks * block + 1]);
        }
    }
    sizes
}

/// A piece at each level of indirect blocks, some of them sharing a block.
fn sparse() -> File {
    let pieces = [10, 200, 13_000, 400_000, 80 << 20, (80 << 20) + 90_000, (4 << 30) - 1, (4 << 30) + 5000];
    let extents = pieces.map(|at| (at, noise(at, if at == 80 << 20 { 70_000 } else { 100 })));
    File { attributes: Attributes::readable(MADE), size: 5 << 30, extents: extents.into() }
}

fn demo() -> Folder {
    let deep = (0..100).fold(file(b"deep".to_vec()), |node, _| Node::Folder(folder([(b"d".to_vec(), node)])));
    let many = (0..3000).map(|index| {
        (format!("{index:04}{}", "m".repeat(index % 90)).into_bytes(), file(noise(index as u64, index % 7)))
    });
    let mut root = folder([
        (b"deep".to_vec(), deep),
        (b"many".to_vec(), Node::Folder(folder(many))),
        (vec![b'n'; 255], file(b"long name".to_vec())),
        (b"short-link".to_vec(), link(b"many/0001m")),
        (b"59-link".to_vec(), link(&[b"./".repeat(27), b"many/".to_vec()].concat())),
        (b"60-link".to_vec(), link(&[b"./".repeat(27), b"many/.".to_vec()].concat())),
        (b"long-link".to_vec(), link(&[b"./".repeat(500), b"many/0001m".to_vec()].concat())),
        (b"sparse".to_vec(), Node::File(sparse())),
    ]);
    root.entries
        .extend(sizes().into_iter().map(|size| (format!("file-{size}").into_bytes(), file(noise(size as u64, size)))));
    root
}

fn build(options: &ImageOptions, root: &Folder) -> Vec<u8> {
    let mut image = Vec::new();
    let built = make_image(options, root, &mut image).unwrap();
    assert!(image.len() as u64 <= built.volume_bytes && built.volume_bytes <= options.volume_bytes);
    image.resize(built.volume_bytes as usize, 0);
    image
}

fn check_with_e2fsck(image: &Path) {
    let name = image.to_str().unwrap();
    let output = Command::new("e2fsck").args(["-fn", name]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn what_was_built_is_read_back() {
    for block_bytes in [1024, 2048, 4096] {
        let image = build(&options(block_bytes, 64 << 20), &demo());
        let volume = complete(Volume::mount(AnyDisk::new(MemoryDisk::new(image)), MountOptions::default())).unwrap();
        assert_eq!(&volume.superblock().label[..5], b"demo\0");
        for size in sizes() {
            assert!(content(&volume, &format!("file-{size}")) == noise(size as u64, size), "{size} bytes");
        }
        assert_eq!(content(&volume, &format!("deep/{}", vec!["d"; 100].join("/"))), b"deep");
        assert_eq!(content(&volume, "long-link"), noise(1, 1));
        for link in ["59-link", "60-link", "lost+found"] {
            assert_eq!(resolve(&volume, link).unwrap().kind, Kind::Directory);
        }
        let many = resolve(&volume, "many").unwrap();
        assert_eq!((names(&volume, &many).len(), many.modified, many.permissions), (3000, MADE, 0o755));
        let inode = resolve(&volume, "sparse").unwrap();
        for (offset, bytes) in sparse().extents {
            let mut buffer = vec![0xaa; bytes.len() + 20];
            read(&volume, &inode, offset - 10, &mut buffer).unwrap();
            assert!(
                buffer[..10] == [0; 10]
                    && buffer[10..][..bytes.len()] == bytes
                    && buffer[10 + bytes.len()..] == [0; 10]
            );
        }
    }
}

#[test]
fn e2fsck_finds_it_clean_and_debugfs_reads_it() {
    if !has_tool("e2fsck") || !has_tool("debugfs") {
        return;
    }
    let place = support::folder();
    let path = place.path().join("image");
    let copy = place.path().join("copy");
    let empty = folder([]);
    for block_bytes in [1024, 2048, 4096] {
        for megabytes in [1, 8, 9, 64, 130, 300] {
            let root = if megabytes >= 64 { demo() } else { empty.clone() };
            fs::write(&path, build(&options(block_bytes, megabytes << 20), &root)).unwrap();
            check_with_e2fsck(&path);
            if megabytes == 64 {
                for size in sizes() {
                    let command = format!("dump file-{size} {}", copy.display());
                    run("debugfs", &["-R", &command, path.to_str().unwrap()]);
                    assert!(fs::read(&copy).unwrap() == noise(size as u64, size));
                }
                mount(&path).unwrap();
            }
        }
    }
}

#[test]
fn linux_mounts_it() {
    let place = support::folder();
    let (path, point) = (place.path().join("image"), place.path().join("mounted"));
    fs::create_dir(&point).unwrap();
    fs::write(&path, build(&options(4096, 64 << 20), &demo())).unwrap();
    let arguments = ["-t", "ext2", "-o", "loop,ro", path.to_str().unwrap(), point.to_str().unwrap()];
    if !Command::new("mount").args(arguments).output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this user or machine cannot mount an image");
        return;
    }
    let sizes_match = sizes()
        .into_iter()
        .all(|size| fs::read(point.join(format!("file-{size}"))).is_ok_and(|bytes| bytes == noise(size as u64, size)));
    let sparse_size = fs::metadata(point.join("sparse")).map(|metadata| metadata.len());
    let linked = fs::read(point.join("long-link"));
    support::unmount(&point);
    assert!(sizes_match);
    assert_eq!(sparse_size.unwrap(), 5 << 30);
    assert_eq!(linked.unwrap(), noise(1, 1));
}

#[test]
fn what_cannot_be_built_is_said() {
    let refused = |options: ImageOptions, root: Folder| make_image(&options, &root, &mut Vec::new()).unwrap_err();
    let small = options(1024, 1 << 20);
    assert_eq!(refused(options(512, 1 << 20), folder([])), ImageError::BlockSize(512));
    assert_eq!(refused(options(1024, 3000), folder([])), ImageError::VolumeSize(3000));
    assert_eq!(refused(options(1024, 8 << 40), folder([])), ImageError::VolumeSize(8 << 40));
    assert_eq!(refused(small, folder([(b"big".to_vec(), file(vec![1; 2 << 20]))])), ImageError::Full);
    for name in [&b""[..], b".", b"..", b"a/b", b"a\0", &[b'n'; 256], b"lost+found"] {
        assert_eq!(refused(small, folder([(name.to_vec(), file(Vec::new()))])), ImageError::Name(name.to_vec()));
    }
    for target in [Vec::new(), vec![b'x'; 1024]] {
        assert_eq!(refused(small, folder([(b"l".to_vec(), link(&target))])), ImageError::Target(b"l".to_vec()));
    }
    let overlapping = BTreeMap::from([(0, vec![1; 10]), (9, vec![1; 10])]);
    let beyond = BTreeMap::from([(15, vec![1; 10])]);
    for extents in [overlapping, beyond] {
        let node = Node::File(File { attributes: Attributes::readable(0), size: 20, extents });
        assert_eq!(refused(small, folder([(b"f".to_vec(), node)])), ImageError::Content(b"f".to_vec()));
    }
}

/// A sink with the content of foreign files.
struct WithSources {
    image: Vec<u8>,
    sources: Vec<Vec<u8>>,
}

impl ImageSink for WithSources {
    type Error = std::convert::Infallible;

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Self::Error> {
        self.image.write_at(offset, bytes)
    }

    fn copy(&mut self, key: usize, from: Range<u64>, offset: u64) -> Result<(), Self::Error> {
        let bytes = &self.sources[key][from.start as usize..from.end as usize];
        self.image.write_at(offset, bytes)
    }
}

#[test]
fn foreign_files_are_copied_by_the_sink_to_where_their_own_would_lie() {
    for block_bytes in [1024, 4096] {
        let sizes = sizes();
        let sources: Vec<Vec<u8>> = sizes.iter().map(|&size| noise(size as u64, size)).collect();
        let named = |index: usize| format!("file-{index}").into_bytes();
        let own = sources.iter().enumerate().map(|(key, bytes)| (named(key), file(bytes.clone())));
        let expected = build(&options(block_bytes, 64 << 20), &folder(own));
        let foreign = sources.iter().enumerate().map(|(key, bytes)| {
            let size = bytes.len() as u64;
            let extents = std::iter::once(0..size).filter(|all| !all.is_empty()).collect();
            (named(key), Node::Foreign(Foreign { attributes: Attributes::readable(MADE), size, key, extents }))
        });
        let root = folder(foreign);
        let mut sink = WithSources { image: Vec::new(), sources: sources.clone() };
        make_image(&options(block_bytes, 64 << 20), &root, &mut sink).expect("room for all");
        sink.image.resize(expected.len(), 0);
        assert!(sink.image == expected, "blocks of {block_bytes} bytes");
    }
}

#[test]
fn holes_of_foreign_files_take_no_room_and_blocks_are_copied_once() {
    let size = 5 << 20;
    let mut source = vec![0; size];
    source[5000..6000].fill(1);
    source[6050..7000].fill(2);
    source[4 << 20..][..10].fill(3);
    let foreign = Foreign {
        attributes: Attributes::readable(MADE),
        size: size as u64,
        key: 0,
        extents: vec![5000..6000, 6050..7000, 4 << 20..(4 << 20) + 10],
    };
    let root = folder([(b"sparse".to_vec(), Node::Foreign(foreign.clone()))]);
    let mut sink = WithSources { image: Vec::new(), sources: vec![source.clone()] };
    let built = make_image(&options(1024, 8 << 20), &root, &mut sink).expect("room for it");
    sink.image.resize(built.volume_bytes as usize, 0);
    let empty = make_image(&options(1024, 8 << 20), &folder([]), &mut Vec::new()).expect("room");
    // Four blocks, of which the first two extents share one, and two indirect ones on the way to the last.
    assert_eq!(empty.free_blocks - built.free_blocks, 4 + 2);
    let volume =
        complete(Volume::mount(AnyDisk::new(MemoryDisk::new(sink.image)), MountOptions::default())).expect("a volume");
    assert!(content(&volume, "sparse") == source);
    let overlapping = vec![5..10, 9..12];
    let backwards = vec![Range { start: 10, end: 5 }, 6..7];
    let too_far = vec![0..5, 6..size as u64 + 1];
    for extents in [overlapping, backwards, too_far] {
        let wrong = folder([(b"x".to_vec(), Node::Foreign(Foreign { extents, ..foreign.clone() }))]);
        let refused = make_image(&options(1024, 8 << 20), &wrong, &mut Vec::new());
        assert_eq!(refused, Err(ImageError::Content(b"x".to_vec())));
    }
}
