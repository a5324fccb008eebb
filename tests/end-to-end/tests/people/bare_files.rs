//! Programs for files and volumes on bare machines: partitions, a RAM disk, and Linux's verdict afterwards.

use std::fs;
use std::time::Duration;

use end_to_end::{BareMachine, Format, Image, Machine, Run, finish};

use crate::partitions::{GPT, disk, fill, folder};

test_needs::needs!(Qemu, E2fsprogs, Sfdisk);

/// First sectors of the two partitions, and the number of sectors of each, of 512 bytes.
const PARTITIONS: [(usize, usize); 2] = [(2048, 32_768), (40_960, 32_768)];

/// Uses every program for files and volumes. The output is independent of machine and time.
const SCRIPT: &str = "\
cat /fs/disk0p1/text /fs/disk0p2/text
format ram0 --label memory --yes > /fs/disk0p1/report && mount ram0 && wc -l /fs/disk0p1/report
rm /fs/disk0p1/report
mkdir -p /fs/ram0/a/b; write /fs/ram0/a/one 'the first line'; write --append /fs/ram0/a/one 'the second line'
cp /fs/ram0/a/one /fs/disk0p1/copy; cp -r /fs/ram0/a /fs/disk0p2/a; mv /fs/disk0p1/copy /fs/disk0p2/a/b/moved
ln -s ../one /fs/disk0p2/a/b/link; ln /fs/disk0p2/a/one /fs/disk0p2/a/hard
cat /fs/disk0p2/a/b/link; head -n 1 /fs/disk0p2/a/b/moved; tail -n 1 /fs/disk0p2/a/hard
wc /fs/disk0p2/a/one; hash /fs/disk0p2/a/one /fs/disk0p2/a/b/moved
find /fs/disk0p2/a; du --bytes /fs/disk0p2/a/one
dd --from /fs/disk0p2/a/one --to /fs/ram0/piece --block-bytes 4 --skip 1 --count 2 | wc -l; cat /fs/ram0/piece; echo
dd --from /dev/disk0p1 --to /fs/ram0/sectors --block-bytes 64k --count 16 | wc -l; wc -c /fs/ram0/sectors
df /fs/ram0
rm -r /fs/disk0p2/a/b && rm /fs/disk0p2/text && rmdir /fs/ram0/a/b && tree /fs/disk0p2
sync; umount /fs/ram0 && check ram0; mount ram0 /fs/deep/er --read-only && write /fs/deep/er/no no || echo refused
cat /fs/deep/er/a/one; umount /fs/disk0p1 && check disk0p1
mount disk0 || echo busy
exit 3
";

fn image() -> Image {
    let image = disk(64, GPT);
    for ((first, _), text) in PARTITIONS.into_iter().zip(["first", "second"]) {
        fill(&image, first as u64, folder(text).path());
    }
    image
}

/// The volumes in both partitions pass e2fsck.
#[track_caller]
fn volumes(image: &Image) -> [Image; 2] {
    let bytes = fs::read(image.path()).expect("the disk can be read");
    PARTITIONS.map(|(first, count)| {
        let volume = Image::with_bytes(&bytes[first * 512..(first + count) * 512]);
        volume.check();
        volume
    })
}

#[track_caller]
fn did_everything(run: &Run, image: &Image) {
    assert_eq!(run.status, Some(3), "{run}");
    let text = run.text();
    let lines = [
        "first",
        "second",
        "/dev/ram0 is at /fs/ram0 (ext2)",
        "the first line",
        "the second line",
        "/dev/ram0 (ext2): no fault",
        "/dev/disk0p1 (ext2): no fault",
        "refused",
        "busy",
    ];
    for line in lines {
        assert!(text.lines().any(|said| said == line), "`{line}` is missing:\n{run}");
    }
    assert_eq!(text.matches("the first line\nthe second line\n").count(), 3, "{run}");
    assert!(text.contains("first li\n") && text.contains("1048576  /fs/ram0/sectors\n"), "{run}");
    let [_, second] = volumes(image);
    let content = fs::read_to_string(second.contents().path().join("a/one")).expect("the file is there");
    assert_eq!(content, "the first line\nthe second line\n");
}

#[test]
fn programs_for_files_and_volumes_do_the_same_as_hosted() {
    let original = image();
    let bytes = fs::read(original.path()).expect("the disk can be read");
    let hosted = Machine::new().disk(original.path()).limit(Duration::from_secs(120)).run(SCRIPT);
    did_everything(&hosted, &original);
    for kind in ["microvm", "qemu"] {
        let image = Image::with_bytes(&bytes);
        let machine = BareMachine::new(kind).with(&["--disk", &image.path().display().to_string()]);
        let bare = finish(machine.command(Some(SCRIPT)), SCRIPT, Duration::from_secs(180));
        did_everything(&bare, &image);
        assert_eq!(bare.text(), hosted.text(), "on {kind}:\n{bare}\n\nand hosted:\n{hosted}");
        assert_eq!(bare.errors, hosted.errors, "on {kind}:\n{bare}\n\nand hosted:\n{hosted}");
    }
}

/// A request larger than the file system's cache, which is read in parts, with indirect blocks in between.
#[test]
fn a_request_of_16_mebibytes_brings_the_right_bytes_hosted_and_bare() {
    const COMMAND: &str = "dd --from /fs/disk0/large --to /fs/disk0/copy --block-bytes 16M | wc -l; \
                           cat /fs/disk0/copy | hash; hash /fs/disk0/large; sync; umount /fs/disk0";
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut state = 1_u64;
    let words = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()
    });
    let content: Vec<u8> = words.flatten().take((16 << 20) + 5001).collect();
    fs::write(folder.path().join("large"), &content).expect("the file can be written");
    let original = Image::of(folder.path(), Format { mebibytes: 48, ..Format::default() });
    let bytes = fs::read(original.path()).expect("the disk can be read");
    let hosted = Machine::new().disk(original.path()).limit(Duration::from_secs(120)).run(COMMAND);
    let image = Image::with_bytes(&bytes);
    let machine = BareMachine::new("microvm").with(&["--disk", &image.path().display().to_string()]);
    let bare = finish(machine.command(Some(COMMAND)), COMMAND, Duration::from_secs(180));
    for (run, image) in [(&hosted, &original), (&bare, &image)] {
        run.orderly();
        let copy = fs::read(image.contents().path().join("copy")).expect("the copy is there");
        assert!(copy == content, "the copy has {} bytes, and other ones:\n{run}", copy.len());
        image.check();
    }
    assert_eq!(bare.text(), hosted.text());
}
