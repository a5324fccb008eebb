//! Enums with a number for the ABI and a text for people.

macro_rules! numbered {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $item_doc:literal])+ $item:ident = $number:literal, $text:literal;)* }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u64)]
        pub enum $name { $($(#[doc = $item_doc])+ $item = $number,)* }
        impl $name {
            /// The variant with this number.
            pub const fn from_number(number: u64) -> Option<$name> {
                match number { $($number => Some($name::$item),)* _ => None }
            }
            /// Text for people.
            pub const fn text(self) -> &'static str {
                match self { $($name::$item => $text,)* }
            }
        }
    };
}
