//! Types that may lie in a block: any bytes are a valid value.

/// A type without padding and pointers of which any bit pattern is a valid value: bytes written by another process can
/// be read in place.
///
/// # Safety
///
/// The type has no padding, no invalid bit pattern, no reference or handle, no interior mutability,
/// and an alignment of at most 64.
pub unsafe trait Plain: Copy + Send + Sync + 'static {
    /// [`abi::type_tag`] of the contract language's text for the type; the kernel compares it.
    const TYPE_TAG: u64;
}

macro_rules! plain_numbers {
    ($($type:ty = $text:literal),* $(,)?) => {$(
        // SAFETY: an integer.
        unsafe impl Plain for $type {
            const TYPE_TAG: u64 = abi::type_tag($text);
        }
    )*};
}

plain_numbers!(
    u8 = "byte",
    u16 = "ushort",
    u32 = "uint",
    u64 = "ulong",
    i8 = "sbyte",
    i16 = "short",
    i32 = "int",
    i64 = "long",
);

// SAFETY: an array has no padding between plain elements.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {
    const TYPE_TAG: u64 = abi::array_type_tag(T::TYPE_TAG, N);
}

macro_rules! plain_records {
    ($($type:ident),* $(,)?) => {$(
        // SAFETY: `repr(C)` with fields that are all u64 or byte arrays of a multiple of 8 bytes.
        unsafe impl Plain for abi::$type {
            const TYPE_TAG: u64 = abi::type_tag(concat!("abi::", stringify!($type)));
        }
    )*};
}

plain_records!(ProcessRecord, ThreadRecord, ChannelRecord, CounterRecord, TraceRecord, StreamRecord, LatencyRecord);

/// Returns the size in bytes of a plain field of a structure, for [`plain!`](crate::plain!).
#[doc(hidden)]
pub const fn field_bytes<S, F: Plain>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

/// Defines a structure that may lie in an exchange-heap block, from the text of its type in the contract language and
/// the structure, whose only attributes are documentation. Compile-time errors: a field that is not [`Plain`], padding,
/// any other attribute.
///
/// It implements an unsafe trait on behalf of its caller, so nothing in its expansion may change its meaning in the calling
/// crate. Attributes could remove the structure and leave the implementation to another of the same name; derives, macros
/// and paths that do not begin with `$crate` are resolved where the macro is called.
#[macro_export]
macro_rules! plain {
    ($text:literal $(#[doc = $documentation:literal])* $visibility:vis struct $name:ident {
        $($(#[doc = $field_documentation:literal])* $field_visibility:vis $field:ident : $type:ty),* $(,)?
    }) => {
        $(#[doc = $documentation])*
        #[repr(C)]
        $visibility struct $name {
            $($(#[doc = $field_documentation])* $field_visibility $field: $type),*
        }

        // An item of its own, so that it is evaluated whether the type is used or not. It takes the field types from the
        // structure rather than naming them again: those could be macros.
        const _: () = {
            if $crate::rust_core::mem::size_of::<$name>() !=
                0 $(+ $crate::exheap::field_bytes(|whole: &$name| &whole.$field))*
            {
                $crate::rust_core::panic!(
                    "the structure has padding; order its fields by size, largest first, or fill it up"
                );
            }
        };

        // SAFETY: the structure is the one defined above, `repr(C)`; the item before refuses a field
        // that is not plain, and padding.
        unsafe impl $crate::exheap::Plain for $name {
            const TYPE_TAG: u64 = $crate::abi::type_tag($text);
        }

        impl $crate::rust_core::marker::Copy for $name {}

        impl $crate::rust_core::clone::Clone for $name {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl $crate::rust_core::cmp::PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                true $(&& self.$field == other.$field)*
            }
        }

        impl $crate::rust_core::cmp::Eq for $name {}

        impl $crate::rust_core::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut $crate::rust_core::fmt::Formatter<'_>) -> $crate::rust_core::fmt::Result {
                formatter
                    .debug_struct($crate::rust_core::stringify!($name))
                    $(.field($crate::rust_core::stringify!($field), &self.$field))*
                    .finish()
            }
        }
    };
}
