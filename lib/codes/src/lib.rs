//! Tables of stable codes, by which messages are found in documentation and tests.
//!
//! Key item: [`codes!`]. Neighbours: `diagnostics` renders what has such a code; `install` has them in SIPs, which is
//! why this crate has no dependencies. Deliberately not here: any code.
#![no_std]
#![forbid(unsafe_code)]

/// Makes an enum of a table of codes, with `ALL`, `text` and `title`, and one more method where the rows have one more
/// column.
///
/// ```
/// #[derive(Debug, PartialEq)]
/// pub enum Weight { Heavy, Light }
///
/// codes::codes! {
///     /// What can be wrong.
///     pub enum Code;
///     /// How bad it is.
///     weight: Weight;
///     Broken = "X001", Heavy, "it is broken";
///     Scratched = "X002", Light, "it has a scratch";
/// }
///
/// assert_eq!(Code::ALL, [Code::Broken, Code::Scratched]);
/// assert_eq!((Code::Broken.text(), Code::Broken.title()), ("X001", "it is broken"));
/// assert_eq!(Code::Scratched.weight(), Weight::Light);
/// ```
#[macro_export]
macro_rules! codes {
    (
        $(#[$about:meta])* pub enum $code:ident;
        $(#[$what:meta])* $column:ident: $kind:ident;
        $($name:ident = $text:literal, $value:ident, $title:literal;)*
    ) => {
        $crate::codes! { $(#[$about])* pub enum $code; $($name = $text, $title;)* }
        impl $code {
            $(#[$what])*
            pub const fn $column(self) -> $kind {
                match self { $($code::$name => $kind::$value,)* }
            }
        }
    };
    ($(#[$about:meta])* pub enum $code:ident; $($name:ident = $text:literal, $title:literal;)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $code { $(#[doc = $title] $name,)* }
        impl $code {
            /// All of them, in the order of the table.
            pub const ALL: &'static [$code] = &[$($code::$name),*];
            /// The code as it is printed.
            pub const fn text(self) -> &'static str {
                match self { $($code::$name => $text,)* }
            }
            /// What it is about, a phrase.
            pub const fn title(self) -> &'static str {
                match self { $($code::$name => $title,)* }
            }
        }
    };
}
