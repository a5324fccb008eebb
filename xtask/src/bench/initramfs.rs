//! An initramfs: files that the Linux kernel unpacks into memory at boot.
//!
//! The format is `newc` of cpio (Linux, `Documentation/driver-api/early-userspace/buffer-format.rst`):
//! for each file a header of 13 numbers of 8 hexadecimal digits each behind the magic `070701`, the name
//! with a zero byte, the content; name and content are filled up to a multiple of 4 bytes.

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
/// Major and minor number of the console, the standard streams of init.
const CONSOLE: (u32, u32) = (5, 1);

/// Returns an archive with one program as init.
pub fn of_one_program(program: &[u8]) -> Vec<u8> {
    Archive::of(program).end()
}

/// An archive under construction.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    files: u32,
}

impl Archive {
    /// Creates an archive with the init program and the console device.
    pub fn of(program: &[u8]) -> Archive {
        let mut archive = Archive::default();
        for folder in ["dev", "proc", "sys"] {
            archive.folder(folder);
        }
        archive.add("tmp", DIRECTORY | 0o1777, (0, 0), &[]);
        archive.add("dev/console", CHARACTER_DEVICE | 0o600, CONSOLE, &[]);
        archive.file("init", program);
        archive
    }

    /// Adds a folder, which must precede its contents.
    pub fn folder(&mut self, name: &str) {
        self.add(name, DIRECTORY | 0o755, (0, 0), &[]);
    }

    /// Adds a file that all may read and execute.
    pub fn file(&mut self, name: &str, content: &[u8]) {
        self.add(name, REGULAR | 0o755, (0, 0), content);
    }

    /// The whole archive.
    pub fn end(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn add(&mut self, name: &str, mode: u32, (major, minor): (u32, u32), content: &[u8]) {
        self.files += 1;
        let (name_bytes, content_bytes) = (name.len() as u32 + 1, content.len() as u32);
        // Inode, mode, user, group, links, time, size, device, device number, length of the name, checksum.
        let numbers = [self.files, mode, 0, 0, 1, 0, content_bytes, 0, 0, major, minor, name_bytes, 0];
        self.bytes.extend_from_slice(b"070701");
        for number in numbers {
            self.bytes.extend_from_slice(format!("{number:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.fill();
        self.bytes.extend_from_slice(content);
        self.fill();
    }

    fn fill(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and contents, read by the format's own rules.
    fn read(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        let mut at = 0;
        while at < archive.len() {
            let number = |index: usize| {
                let digits = &archive[at + 6 + 8 * index..][..8];
                usize::from_str_radix(std::str::from_utf8(digits).expect("digits"), 16).expect("a number")
            };
            assert_eq!(&archive[at..at + 6], b"070701");
            let name = &archive[at + 110..][..number(11) - 1];
            let content = (at + 110 + number(11)).next_multiple_of(4);
            files.push((String::from_utf8_lossy(name).into_owned(), archive[content..][..number(6)].to_vec()));
            at = (content + number(6)).next_multiple_of(4);
        }
        files
    }

    #[test]
    fn the_archive_holds_the_program_and_ends_as_it_must() {
        let files = read(&of_one_program(b"12345"));
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["dev", "proc", "sys", "tmp", "dev/console", "init", "TRAILER!!!"]);
        assert_eq!(files[5].1, b"12345");
    }
}
