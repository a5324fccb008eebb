//! The files and requests of the measurement, after SPECweb99 as section 5.1 of "Sealing OS Processes" describes it.
//!
//! A folder of the set has nine files of each class; class by class they are ten times as large. Which folder is asked
//! for follows Zipf's law, which class the paper's shares. The choice is the same in every run. Deliberately not here:
//! who asks and who answers.

use std::path::Path;

use crate::failure::{Failure, Outcome};

/// Folders of the set; each holds 5 MB.
pub const FOLDERS: usize = 20;
/// Files of each class in a folder.
const FILES: usize = 9;
/// Bytes of the smallest file of each class; the n-th file is n times as large.
const CLASS_BYTES: [usize; 4] = [102, 1_024, 10_240, 102_400];
/// Of a hundred requests, how many are for a file of each class.
const CLASS_SHARES: [u64; 4] = [35, 50, 14, 1];
/// Of a thousand requests within a class, how many are for each of its files (SPECweb99, table of file popularity).
const FILE_SHARES: [u64; FILES] = [39, 59, 88, 177, 353, 118, 71, 50, 45];
/// Of a hundred requests of the mix, how many are answered by an application.
const DYNAMIC_SHARE: u64 = 30;
/// Of a thousand of those, how many are plain GETs, GETs with a chosen advertisement, and POSTs; the rest is asked for
/// as a CGI program would be (SPECweb99: 12.45, 12.6, 4.8 and 0.15 of the 30).
const DYNAMIC_SHARES: [u64; 3] = [415, 420, 160];
/// Different requests that a client goes through again and again.
pub const REQUESTS: usize = 8_192;
/// Advertisements and users that cookies name.
const PROFILES: u64 = 360;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// One file of 1 KiB, for what a request costs without its file.
    Small,
    /// The set's files only.
    Static,
    /// The set's files, and applications for 30 of 100.
    Whole,
    /// One file of 1 MiB, for what a byte costs.
    Large,
}

impl Mix {
    /// All, in the order of the table.
    pub const ALL: [Mix; 4] = [Mix::Small, Mix::Static, Mix::Whole, Mix::Large];

    /// What a person calls it.
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

/// Writes the set into a folder, unless it is there already.
///
/// # Errors
/// A file cannot be written.
pub fn write(folder: &Path) -> Outcome<()> {
    let mark = folder.join("index.html");
    if mark.exists() {
        return Ok(());
    }
    let put = |path: &Path, bytes: usize, salt: usize| {
        let text = (0..bytes).map(|at| b'a' + ((at / 61 + at % 61 + salt) % 26) as u8).collect::<Vec<u8>>();
        std::fs::write(path, text).map_err(|error| Failure::file("write", path, &error))
    };
    for number in 0..FOLDERS {
        let place = folder.join(format!("dir{number:05}"));
        std::fs::create_dir_all(&place).map_err(|error| Failure::file("make the folder", &place, &error))?;
        for (class, bytes) in CLASS_BYTES.iter().enumerate() {
            for file in 1..=FILES {
                put(&place.join(format!("class{class}_{file}")), bytes * file, number + class + file)?;
            }
        }
    }
    put(&folder.join("small"), 1 << 10, 0)?;
    put(&folder.join("large"), 1 << 20, 0)?;
    std::fs::write(&mark, "<!doctype html><title>files</title>\n")
        .map_err(|error| Failure::file("write", &mark, &error))
}

/// What the client asks for, in turn.
pub fn requests(mix: Mix) -> Vec<Asked> {
    let mut dice = Dice(0x5eed);
    let one = |dice: &mut Dice| match mix {
        Mix::Small => Asked::get("/small".into()),
        Mix::Large => Asked::get("/large".into()),
        Mix::Static => Asked::get(file(dice)),
        Mix::Whole if dice.below(100) < DYNAMIC_SHARE => dynamic(dice),
        Mix::Whole => Asked::get(file(dice)),
    };
    (0..REQUESTS).map(|_| one(&mut dice)).collect()
}

fn file(dice: &mut Dice) -> String {
    let folder = zipf(dice);
    let class = dice.share(&CLASS_SHARES);
    let file = dice.share(&FILE_SHARES) + 1;
    format!("/dir{folder:05}/class{class}_{file}")
}

fn dynamic(dice: &mut Dice) -> Asked {
    let file = file(dice);
    match dice.share(&[DYNAMIC_SHARES[0], DYNAMIC_SHARES[1], DYNAMIC_SHARES[2], 5]) {
        0 => Asked::get(format!("/spec/get?{file}")),
        1 => {
            let user = dice.below(PROFILES);
            let cookie = format!("my_cookie=user_id={}&last_ad={}", 10_000 + user, dice.below(PROFILES));
            Asked { cookie: Some(cookie), ..Asked::get(format!("/spec/ad?{file}")) }
        }
        2 => {
            let form = format!("urlroot={file}&dir={}&class=1&num=1&client={}", zipf(dice), dice.below(PROFILES));
            Asked { form: Some(form), ..Asked::get("/spec/post".into()) }
        }
        _ => Asked::get(format!("/spec/cgi?{file}")),
    }
}

/// A folder: the n-th is asked for 1/n as often as the first.
fn zipf(dice: &mut Dice) -> usize {
    const WHOLE: u64 = 1_000_000;
    let shares: Vec<u64> = (1..=FOLDERS as u64).map(|rank| WHOLE / rank).collect();
    dice.share(&shares)
}

/// Numbers that look random and are the same each time (splitmix64).
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

    /// An index, each as often as its share says.
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
    fn the_first_folder_is_asked_for_most() {
        let count = |folder: &str| requests(Mix::Static).iter().filter(|one| one.target.starts_with(folder)).count();
        assert!(count("/dir00000") > count("/dir00001"));
        assert!(count("/dir00001") > count("/dir00009"));
    }
}
