//! Tables of stable error codes, under which messages are documented and tested.
//!
//! Key item: [`codes!`]. Neighbours: `diagnostics` renders errors with codes; `install` uses codes in SIPs, hence no
//! dependencies here. Deliberately not here: the codes themselves.
#![no_std]
#![forbid(unsafe_code)]

/// Defines an enum of codes from a table, with `ALL`, `text` and `title`, and one more method if the rows have another
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
            /// All codes, in table order.
            pub const ALL: &'static [$code] = &[$($code::$name),*];
            /// The code as printed.
            pub const fn text(self) -> &'static str {
                match self { $($code::$name => $text,)* }
            }
            /// Title, a phrase.
            pub const fn title(self) -> &'static str {
                match self { $($code::$name => $title,)* }
            }
        }
    };
}
