//! The files and requests of the measurement, after SPECweb99 as section 5.1 of "Sealing OS Processes" describes it.
//!
//! A folder of the set has nine files of each class; each class is ten times as large as the one before. Folders are
//! chosen by Zipf's law, classes by the paper's shares, the same in every run. Deliberately not here: client, servers.

use std::ops::Range;
use std::path::Path;

use sing::failure::{Failure, Outcome};

/// Folders of the set; each holds 5 MB.
pub const FOLDERS: usize = 20;
/// Files of each class in a folder.
const FILES: usize = 9;
/// Bytes of the smallest file of each class; the file with the number n is n + 1 times as large.
const CLASS_BYTES: [usize; 4] = [102, 1_024, 10_240, 102_400];
/// Share of requests by class, in percent.
const CLASS_SHARES: [u64; 4] = [35, 50, 14, 1];
/// Share of requests by file within a class, in permille (SPECweb99, table of file popularity).
const FILE_SHARES: [u64; FILES] = [39, 59, 88, 177, 353, 118, 71, 50, 45];
/// Share of requests answered by applications, in percent.
const DYNAMIC_SHARE: u64 = 30;
/// Of those, the share of plain GETs, GETs with an advertisement, and POSTs, in permille; the rest are CGI requests
/// (SPECweb99: 12.45, 12.6, 4.8 and 0.15 of the 30).
const DYNAMIC_SHARES: [u64; 3] = [415, 420, 160];
/// Number of distinct requests, which the client repeats.
pub const REQUESTS: usize = 8_192;
/// Number of visitors in the application's cookies.
const VISITORS: u64 = 10_000;
/// Number of advertisements, likewise.
const ADS: u64 = 360;
/// Files of the two middle classes have a placeholder for an advertisement, between two marks.
const AD_CLASSES: Range<usize> = 1..3;
const AD_PLACE: &str = "<!WEB99CAD><IMG SRC=\"/file_set/dir00000/class0_0\"><!/WEB99CAD>";
/// Content of the set's index page; identifies the set.
const PAGE: &str = "<!doctype html><title>files</title><p>Files of SPECweb99, with places for advertisements\n";

/// A mix of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// One file of 1 KiB: cost per request.
    Small,
    /// The set's files only.
    Static,
    /// The set's files, and applications for 30 of 100.
    Whole,
    /// One file of 1 MiB: cost per byte.
    Large,
}

impl Mix {
    /// All, in the order of the table.
    pub const ALL: [Mix; 4] = [Mix::Small, Mix::Static, Mix::Whole, Mix::Large];

    /// Display name.
    pub fn name(self) -> &'static str {
        match self {
            Mix::Small => "one file of 1 KiB",
            Mix::Static => "files of SPECweb99",
            Mix::Whole => "the same, 30 % dynamic",
            Mix::Large => "one file of 1 MiB",
        }
    }
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its path and query.
    pub target: String,
    /// A cookie, if it carries one.
    pub cookie: Option<String>,
    /// A form, if it is a POST.
    pub form: Option<String>,
}

impl Asked {
    fn get(target: String) -> Asked {
        Asked { target, cookie: None, form: None }
    }
}

/// Writes the set into a folder, unless it exists.
///
/// # Errors
/// A file cannot be written.
pub fn write(folder: &Path) -> Outcome<()> {
    let page = folder.join("index.html");
    if std::fs::read(&page).is_ok_and(|text| text == PAGE.as_bytes()) {
        return Ok(());
    }
    // Remove files of another version of the set.
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("make the folder", folder, &error))?;
    let put =
        |path: &Path, text: &[u8]| std::fs::write(path, text).map_err(|error| Failure::file("write", path, &error));
    for number in 0..FOLDERS {
        let place = folder.join(format!("dir{number:05}"));
        std::fs::create_dir_all(&place).map_err(|error| Failure::file("make the folder", &place, &error))?;
        for (class, bytes) in CLASS_BYTES.iter().enumerate() {
            for file in 0..FILES {
                let mut text = letters(bytes * (file + 1), number + class + file);
                if AD_CLASSES.contains(&class) {
                    let middle = text.len() / 2;
                    text[middle..middle + AD_PLACE.len()].copy_from_slice(AD_PLACE.as_bytes());
                }
                put(&place.join(name(class, file)), &text)?;
            }
        }
    }
    put(&folder.join("small"), &letters(1 << 10, 0))?;
    put(&folder.join("large"), &letters(1 << 20, 0))?;
    put(&page, PAGE.as_bytes())
}

fn letters(bytes: usize, salt: usize) -> Vec<u8> {
    (0..bytes).map(|at| b'a' + ((at / 61 + at % 61 + salt) % 26) as u8).collect()
}

fn name(class: usize, file: usize) -> String {
    format!("class{class}_{file}")
}

/// Returns the client's requests, in order.
pub fn requests(mix: Mix) -> Vec<Asked> {
    let mut dice = Dice(0x5eed);
    let one = |dice: &mut Dice| match mix {
        Mix::Small => Asked::get("/small".into()),
        Mix::Large => Asked::get("/large".into()),
        Mix::Static => Asked::get(format!("/{}", File::any(dice).path())),
        Mix::Whole if dice.below(100) < DYNAMIC_SHARE => dynamic(dice),
        Mix::Whole => Asked::get(format!("/{}", File::any(dice).path())),
    };
    (0..REQUESTS).map(|_| one(&mut dice)).collect()
}

/// A file of the set.
struct File {
    folder: usize,
    class: usize,
    number: usize,
}

impl File {
    fn any(dice: &mut Dice) -> File {
        File { folder: zipf(dice), class: dice.share(&CLASS_SHARES), number: dice.share(&FILE_SHARES) }
    }

    fn path(&self) -> String {
        format!("dir{:05}/{}", self.folder, name(self.class, self.number))
    }
}

fn dynamic(dice: &mut Dice) -> Asked {
    let file = File::any(dice);
    let path = file.path();
    match dice.share(&[DYNAMIC_SHARES[0], DYNAMIC_SHARES[1], DYNAMIC_SHARES[2], 5]) {
        0 => Asked::get(format!("/spec/get?file={path}")),
        1 => {
            let cookie = format!("my_cookie=user_id={}&last_ad={}", dice.below(VISITORS), dice.below(ADS));
            Asked { cookie: Some(cookie), ..Asked::get(format!("/spec/ad?file={path}")) }
        }
        2 => {
            let File { folder, class, number } = file;
            let client = dice.below(VISITORS);
            let form = format!("urlroot=/&dir={folder}&class={class}&num={number}&client={client}");
            Asked { form: Some(form), ..Asked::get("/spec/post".into()) }
        }
        _ => Asked::get(format!("/spec/cgi?file={path}")),
    }
}

/// Chooses a folder: the n-th is 1/n as likely as the first.
fn zipf(dice: &mut Dice) -> usize {
    const WHOLE: u64 = 1_000_000;
    let shares: Vec<u64> = (1..=FOLDERS as u64).map(|rank| WHOLE / rank).collect();
    dice.share(&shares)
}

/// Deterministic pseudo-random numbers (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Chooses an index by weight.
    fn share(&mut self, shares: &[u64]) -> usize {
        let mut left = self.below(shares.iter().sum());
        for (index, share) in shares.iter().enumerate() {
            match left.checked_sub(*share) {
                Some(rest) => left = rest,
                None => return index,
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_dynamic_requests_have_their_shares() {
        let asked = requests(Mix::Whole);
        let of = |what: &dyn Fn(&Asked) -> bool| asked.iter().filter(|one| what(one)).count() * 100 / asked.len();
        let dynamic = of(&|one| one.target.starts_with("/spec/"));
        assert!((28..=32).contains(&dynamic), "{dynamic} of 100 are dynamic");
        let files: Vec<Asked> = requests(Mix::Static);
        for (class, share) in CLASS_SHARES.iter().enumerate() {
            let seen = files.iter().filter(|one| one.target.contains(&format!("class{class}_"))).count();
            let seen = seen as f64 * 100.0 / files.len() as f64;
            assert!((seen - *share as f64).abs() < 2.0, "class {class}: {seen} of 100");
        }
        assert_eq!(asked, requests(Mix::Whole), "the choice is the same each time");
    }

    #[test]
    fn each_file_that_is_asked_for_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let set = folder.path().join("set");
        write(&set).expect("room for the set");
        let asked = requests(Mix::Static).into_iter().chain(requests(Mix::Small)).chain(requests(Mix::Large));
        for one in asked {
            assert!(set.join(one.target.trim_start_matches('/')).is_file(), "{}", one.target);
        }
        let length = |path: &str| std::fs::metadata(set.join(path)).expect("a file").len();
        assert_eq!((length("dir00000/class0_0"), length("dir00019/class3_8")), (102, 921_600));
        let text = std::fs::read_to_string(set.join("dir00003/class1_0")).expect("text");
        assert!(text.contains(AD_PLACE) && text.len() == 1_024, "{text}");
    }

    #[test]
    fn the_first_folder_is_asked_for_most() {
        let count = |folder: &str| requests(Mix::Static).iter().filter(|one| one.target.starts_with(folder)).count();
        assert!(count("/dir00000") > count("/dir00001"));
        assert!(count("/dir00001") > count("/dir00009"));
    }
}
