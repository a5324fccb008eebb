//! Access rights.

use core::fmt;

macro_rules! rights {
    ($($name:ident = $bit:literal, $word:literal, $meaning:literal;)*) => {
        /// An access right.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Right { $(#[doc = $meaning] $name = 1 << $bit,)* }

        impl Right {
            /// All rights, in canonical order.
            pub const ALL: &[Right] = &[$(Right::$name),*];

            /// The keyword in a list.
            pub const fn word(self) -> &'static str {
                match self { $(Right::$name => $word,)* }
            }

            /// Description.
            pub const fn meaning(self) -> &'static str {
                match self { $(Right::$name => $meaning,)* }
            }
        }
    };
}

rights! {
    Traverse = 0, "traverse", "to traverse a folder";
    Read = 1, "read", "to read files, folders, attributes, links and ACLs";
    Write = 2, "write", "to write files and attributes, and to create, rename and remove names";
    Register = 3, "register", "to register a provider at a name";
    Notify = 4, "notify", "to be notified of changes of names";
    SetAcl = 5, "set-acl", "to change ACLs";
    Execute = 6, "execute", "to run a file";
    Connect = 7, "connect", "to connect to a service";
    Listen = 8, "listen", "to accept connections from a network";
    Control = 9, "control", "to start and stop a service";
}

/// A set of rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rights(u16);

impl Rights {
    /// The empty set.
    pub const NONE: Rights = Rights(0);
    /// All rights.
    pub const ALL: Rights = {
        let mut all = 0;
        let mut index = 0;
        while index < Right::ALL.len() {
            all |= Right::ALL[index] as u16;
            index += 1;
        }
        Rights(all)
    };
    /// The keyword for all rights.
    pub const ALL_WORD: &str = "all";

    /// The set of these rights.
    pub fn of(rights: &[Right]) -> Rights {
        rights.iter().fold(Rights::NONE, |set, &right| set.with(right))
    }

    /// This set with another right.
    pub const fn with(self, right: Right) -> Rights {
        Rights(self.0 | right as u16)
    }

    /// Whether the set contains the right.
    pub const fn has(self, right: Right) -> bool {
        self.0 & right as u16 != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Sent instead of a set where no list applies, so that everything is allowed.
    pub const UNDECIDED: u32 = u32::MAX;

    /// The set as a wire number: a bit per right, in canonical order.
    pub const fn bits(self) -> u32 {
        self.0 as u32
    }

    /// The set of a wire number; unknown bits are ignored.
    pub const fn from_bits(bits: u32) -> Rights {
        Rights((bits & Rights::ALL.0 as u32) as u16)
    }

    /// Union.
    pub const fn and(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }

    /// Intersection.
    pub const fn common(self, other: Rights) -> Rights {
        Rights(self.0 & other.0)
    }

    /// Difference.
    pub const fn without(self, other: Rights) -> Rights {
        Rights(self.0 & !other.0)
    }

    /// The rights in canonical order.
    pub fn each(self) -> impl Iterator<Item = Right> {
        Right::ALL.iter().copied().filter(move |&right| self.has(right))
    }

    /// Parses comma-separated keywords, or `all`. The error is the unknown word.
    pub fn parse(text: &str) -> Result<Rights, &str> {
        if text == Rights::ALL_WORD {
            return Ok(Rights::ALL);
        }
        text.split(',').try_fold(Rights::NONE, |set, word| {
            let right = Right::ALL.iter().find(|right| right.word() == word).ok_or(word)?;
            Ok(set.with(*right))
        })
    }
}

impl fmt::Display for Right {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Rights::ALL {
            return formatter.write_str(Rights::ALL_WORD);
        }
        for (index, right) in self.each().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(formatter, "{comma}{right}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for right in Right::ALL {
            assert_eq!(Rights::parse(right.word()), Ok(Rights::NONE.with(*right)));
        }
        assert_eq!(Rights::parse("write,read").unwrap().to_string(), "read,write");
        assert_eq!(Rights::parse("all"), Ok(Rights::ALL));
        assert_eq!(Rights::ALL.to_string(), "all");
        assert!(Right::ALL.iter().all(|&right| Rights::from_bits(Rights::NONE.with(right).bits()).has(right)));
        assert_eq!((Rights::from_bits(u32::MAX), Rights::from_bits(1 << 31)), (Rights::ALL, Rights::NONE));
        assert_eq!(Rights::parse("read,fly"), Err("fly"));
        assert_eq!(Rights::parse("read,"), Err(""));
        assert_eq!(Rights::parse("read,all"), Err("all"));
    }
}
