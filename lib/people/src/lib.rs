//! User accounts: names, roles, and passphrase hashes.
//!
//! An account is a line of text, `NAME scrypt:LOG_N:R:P:SALT:HASH [ROLE...]`; the default role is the name. Key types:
//! [`People`], [`Person`]. Deliberately not here: prompting, delays after failures, and storage of the lines.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod secret;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

pub use secret::{Cost, SALT_BYTES, Secret};

/// Maximum length of a name or role, in bytes.
pub const NAME_BYTES: usize = 32;
/// Maximum roles of a person.
pub const MAX_ROLES: usize = 16;
/// Maximum number of people.
pub const MAX_PEOPLE: usize = 256;
/// Minimum length of a new passphrase, in bytes.
pub const MIN_PASSPHRASE_BYTES: usize = 8;

/// A person who may log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    name: String,
    secret: Secret,
    roles: Vec<String>,
}

/// Problem of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineError {
    /// Invalid name.
    Name,
    /// Invalid role, or too many.
    Role,
    /// Malformed or too expensive hash.
    Secret,
    /// The passphrase is too short.
    ShortPassphrase,
    /// Not enough memory for the hash.
    NoMemory,
    /// The name is reserved by the system manifest.
    Taken,
    /// Too many people.
    TooMany,
}

impl fmt::Display for LineError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineError::Name => {
                write!(formatter, "a name begins with a letter and has at most {NAME_BYTES} of a to z, 0 to 9 and `-`")
            }
            LineError::Role => write!(
                formatter,
                "a role is written as a name is, and a person has at most {MAX_ROLES}; separate them with blanks"
            ),
            LineError::Secret => formatter
                .write_str("after the name comes `scrypt:LOG_N:R:P:SALT:HASH`, as the program `people` makes it"),
            LineError::ShortPassphrase => {
                write!(
                    formatter,
                    "a passphrase has at least {MIN_PASSPHRASE_BYTES} bytes; several words are easy to keep"
                )
            }
            LineError::NoMemory => formatter.write_str("there is no memory to make the hash in"),
            LineError::Taken => formatter.write_str("the system manifest has somebody of this name; take another one"),
            LineError::TooMany => write!(formatter, "there are more than {MAX_PEOPLE} people"),
        }
    }
}

/// Whether the text is a valid name of a person or role: `[a-z][a-z0-9-]*`, within the limit.
pub fn is_name(text: &str) -> bool {
    text.len() <= NAME_BYTES
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

impl Person {
    /// Creates a person, with random bytes for the salt.
    pub fn new(
        name: &str,
        roles: Vec<String>,
        passphrase: &[u8],
        salt: [u8; SALT_BYTES],
        cost: Cost,
    ) -> Result<Person, LineError> {
        check_names(name, &roles)?;
        if passphrase.len() < MIN_PASSPHRASE_BYTES {
            return Err(LineError::ShortPassphrase);
        }
        let secret = Secret::of(passphrase, salt, cost).ok_or(LineError::NoMemory)?;
        Ok(Person { name: name.to_string(), secret, roles })
    }

    /// Parses a line.
    pub fn parse(line: &str) -> Result<Person, LineError> {
        let mut words = line.split_ascii_whitespace();
        let name = words.next().ok_or(LineError::Name)?.to_string();
        let secret = words.next().and_then(Secret::parse);
        let roles: Vec<String> = words.map(String::from).collect();
        check_names(&name, &roles)?;
        Ok(Person { name, secret: secret.ok_or(LineError::Secret)?, roles })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the role for a login: the requested one, if the person may take it; the first one by default.
    pub fn role(&self, asked: Option<&str>) -> Option<&str> {
        let mut roles = self.roles().filter(|role| asked.is_none_or(|asked| asked == *role));
        roles.next()
    }

    /// The person's roles, the default one first.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        let own = self.roles.is_empty().then_some(self.name.as_str());
        own.into_iter().chain(self.roles.iter().map(String::as_str))
    }

    /// Verifies a passphrase, in constant time.
    pub fn knows(&self, passphrase: &[u8]) -> bool {
        self.secret.is_of(passphrase)
    }
}

fn check_names(name: &str, roles: &[String]) -> Result<(), LineError> {
    if !is_name(name) {
        return Err(LineError::Name);
    }
    if roles.len() > MAX_ROLES || !roles.iter().all(|role| is_name(role)) {
        return Err(LineError::Role);
    }
    Ok(())
}

impl fmt::Display for Person {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.name, self.secret)?;
        self.roles.iter().try_for_each(|role| write!(formatter, " {role}"))
    }
}

/// All people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct People {
    people: Vec<Person>,
    /// Number of people from the system manifest; they come first.
    named: usize,
}

/// The invalid lines of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Number of the first one, from 1 on.
    pub line: usize,
    /// The problem.
    pub error: LineError,
    /// Number of invalid lines.
    pub lines: usize,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}; ", self.line, self.error)?;
        match self.lines {
            1 => formatter.write_str("this line does not count"),
            lines => write!(formatter, "this and {} further lines do not count", lines - 1),
        }
    }
}

impl People {
    /// Adds a person from the system manifest, who takes precedence over the file.
    ///
    /// # Errors
    /// The line is malformed, the name exists, or there are too many; nobody was added.
    pub fn add(&mut self, line: &str) -> Result<(), LineError> {
        let person = Person::parse(line)?;
        if self.find(person.name()).is_some() {
            return Err(LineError::Taken);
        }
        if self.people.len() == MAX_PEOPLE {
            return Err(LineError::TooMany);
        }
        self.people.push(person);
        self.named = self.people.len();
        Ok(())
    }

    /// Adds the people of a file, one per line. Empty lines and lines that begin with `#` are skipped. The last line
    /// for a name counts, so a passphrase is changed by appending a line. Invalid lines are skipped and reported.
    pub fn read(&mut self, text: &str) -> Option<LeftOut> {
        let mut left_out: Option<LeftOut> = None;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Err(error) = self.read_line(line) {
                left_out.get_or_insert(LeftOut { line: index + 1, error, lines: 0 }).lines += 1;
            }
        }
        left_out
    }

    fn read_line(&mut self, line: &str) -> Result<(), LineError> {
        let person = Person::parse(line)?;
        match self.people.iter().position(|known| known.name == person.name) {
            Some(index) if index < self.named => return Err(LineError::Taken),
            Some(index) => self.people[index] = person,
            None if self.people.len() == MAX_PEOPLE => return Err(LineError::TooMany),
            None => self.people.push(person),
        }
        Ok(())
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.people.is_empty()
    }

    /// Finds a person by name.
    pub fn find(&self, name: &str) -> Option<&Person> {
        self.people.iter().find(|person| person.name == name)
    }

    /// Authenticates a person. An unknown name takes as long as the first person's, so that timing does not reveal
    /// which names exist.
    pub fn admit(&self, name: &str, passphrase: &[u8]) -> Option<&Person> {
        match self.find(name) {
            Some(person) => person.knows(passphrase).then_some(person),
            None => {
                let _ = self.people.first().map(|person| person.knows(passphrase));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec;
    use proptest::prelude::*;

    const SALT: [u8; SALT_BYTES] = [7; SALT_BYTES];

    fn person(name: &str, roles: &[&str]) -> Person {
        let roles = roles.iter().map(ToString::to_string).collect();
        Person::new(name, roles, b"open sesame", SALT, Cost::MIN).unwrap()
    }

    #[test]
    fn a_line_says_all_of_a_person() {
        for roles in [&[][..], &["admin"], &["user", "admin"]] {
            let one = person("alice", roles);
            assert_eq!(Person::parse(&one.to_string()), Ok(one));
        }
    }

    #[test]
    fn only_the_passphrase_admits() {
        let one = person("alice", &[]);
        assert!(one.knows(b"open sesame"));
        for wrong in [&b""[..], b"open sesam", b"open sesame ", b"Open sesame", b"open\0sesame"] {
            assert!(!one.knows(wrong));
        }
    }

    #[test]
    fn the_first_role_is_the_usual_one() {
        assert_eq!(person("alice", &[]).role(None), Some("alice"));
        let one = person("alice", &["user", "admin"]);
        assert_eq!(one.role(None), Some("user"));
        assert_eq!(one.role(Some("admin")), Some("admin"));
        assert_eq!(one.role(Some("alice")), None);
    }

    #[test]
    fn of_a_files_lines_with_one_name_the_last_counts() {
        let other = Person::new("bob", vec![], b"another one", SALT, Cost::MIN).unwrap();
        let lines = format!("# who may\n\n{}\n  {}  \n{other}\n", person("alice", &[]), person("bob", &["admin"]));
        let mut people = People::default();
        assert_eq!(people.read(&lines), None);
        assert_eq!(people.admit("alice", b"open sesame").map(Person::name), Some("alice"));
        assert_eq!(people.admit("bob", b"open sesame"), None);
        assert_eq!(people.admit("bob", b"another one"), Some(&other));
        assert_eq!(people.admit("carol", b"open sesame"), None);
    }

    #[test]
    fn a_line_that_is_wrong_or_torn_locks_nobody_else_out() {
        let (alice, bob) = (person("alice", &[]).to_string(), person("bob", &["admin"]).to_string());
        let mut people = People::default();
        let text = format!("Alice x\n{alice}\n\u{fffd}\n{bob}\n{}", &alice[..alice.len() - 9]);
        let left_out = people.read(&text);
        assert_eq!(left_out, Some(LeftOut { line: 1, error: LineError::Name, lines: 3 }));
        assert!(left_out.unwrap().to_string().ends_with("; this and 2 further lines do not count"));
        for name in ["alice", "bob"] {
            assert!(people.admit(name, b"open sesame").is_some(), "{name}");
        }
    }

    #[test]
    fn whom_the_system_manifest_names_no_file_changes() {
        let mut people = People::default();
        let admin = person("admin", &[]);
        assert_eq!(people.add(&admin.to_string()), Ok(()));
        assert_eq!(people.add(&admin.to_string()), Err(LineError::Taken));
        let other = Person::new("admin", vec!["guest".into()], b"another one", SALT, Cost::MIN).unwrap();
        let left_out = people.read(&other.to_string());
        assert_eq!(left_out, Some(LeftOut { line: 1, error: LineError::Taken, lines: 1 }));
        assert_eq!(people.find("admin"), Some(&admin));
    }

    #[test]
    fn there_is_an_end_to_people() {
        let mut people = People::default();
        let lines: Vec<String> =
            (0..MAX_PEOPLE + 2).map(|number| person(&format!("p{number}"), &[]).to_string()).collect();
        let left_out = people.read(&lines.join("\n"));
        assert_eq!(left_out, Some(LeftOut { line: MAX_PEOPLE + 1, error: LineError::TooMany, lines: 2 }));
    }

    /// The memory quota in a program's manifest, in bytes.
    fn memory(manifest: &str) -> usize {
        let line = manifest.lines().find_map(|line| line.strip_prefix("memory_kib = ")).expect("it has a quota");
        line.parse::<usize>().expect("a number") * 1024
    }

    #[test]
    fn the_programs_that_try_and_make_hashes_have_the_memory_for_the_dearest() {
        const REST: usize = 4 * 1024 * 1024;
        let login = memory(include_str!("../../../apps/system/login/manifest.toml"));
        assert!(Cost::MAX.bytes() + REST <= login, "{} of {login}", Cost::MAX.bytes());
        let people = memory(include_str!("../../../apps/system/people/manifest.toml"));
        assert!(Cost::USUAL.bytes() + REST <= people, "{} of {people}", Cost::USUAL.bytes());
    }

    #[test]
    fn what_costs_more_than_the_programs_have_is_no_line() {
        let line = person("alice", &[]).to_string();
        let with = |cost: &str| Person::parse(&line.replace("scrypt:4:1:1", cost)).map(|_| ());
        assert_eq!(with("scrypt:14:8:16"), Ok(()));
        for dear in ["scrypt:15:8:1", "scrypt:14:9:1", "scrypt:14:8:17", "scrypt:64:8:1"] {
            assert_eq!(with(dear), Err(LineError::Secret), "{dear}");
        }
    }

    #[test]
    fn each_mistake_is_told() {
        let good = person("alice", &[]).to_string();
        let secret = good.split(' ').nth(1).unwrap();
        let rows = [
            (String::from("Alice x"), LineError::Name),
            (format!("{} {secret}", "a".repeat(NAME_BYTES + 1)), LineError::Name),
            (String::from("alice"), LineError::Secret),
            (String::from("alice open-sesame"), LineError::Secret),
            (format!("alice {}0", secret), LineError::Secret),
            (format!("alice {}", &secret[..secret.len() - 1]), LineError::Secret),
            (format!("alice {}", secret.replace("scrypt", "plain")), LineError::Secret),
            (format!("alice {secret}:1"), LineError::Secret),
            (format!("alice {secret} Admin"), LineError::Role),
            (format!("alice {secret} a+b"), LineError::Role),
            (format!("alice {secret}{}", " r".repeat(MAX_ROLES + 1)), LineError::Role),
        ];
        for (line, error) in rows {
            assert_eq!(Person::parse(&line), Err(error), "{line}");
        }
        let short = Person::new("alice", vec![], b"sesame", SALT, Cost::MIN);
        assert_eq!(short, Err(LineError::ShortPassphrase));
    }

    #[test]
    fn the_line_of_the_system_for_trying_out_is_what_it_says() {
        let system = include_str!("../../../systems/login.toml");
        let line = |name: &str| {
            let start = system.find(&format!("\"{name} scrypt:")).expect("the line is there") + 1;
            let rest = &system[start..];
            Person::parse(&rest[..rest.find('"').expect("it ends")]).unwrap()
        };
        for name in ["guest", "admin"] {
            assert!(line(name).knows(b"singularity"), "{name}");
            assert!(!line(name).knows(b"Singularity"), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_line_is_too_strange(line in "\\PC{0,80}") {
            let _ = Person::parse(&line);
        }

        #[test]
        fn no_hash_is_too_strange(text in "[a-z]{0,8} scrypt:[0-9]{0,4}:[0-9]{0,4}:[0-9]{0,4}:[0-9a-f]{0,40}:[0-9a-f]{0,70}") {
            let _ = Person::parse(&text);
        }
    }
}
