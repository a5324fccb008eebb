//! Record fields: numbers, arrays and nested records, as bytes.

/// Byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Little-endian, as on disks and in PC registers.
    Little,
    /// Big-endian, as on networks.
    Big,
}

/// A type of record fields. Its bytes depend only on the record's byte order.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a record",
    label = "write a number of fixed width, an array of such, a structure of `#[layout::bits]` or another record"
)]
pub trait Field: Sized {
    /// Size in bytes.
    const BYTES: usize;
    /// Decodes it from [`BYTES`](Field::BYTES) bytes.
    fn take(bytes: &[u8], order: Order) -> Self;
    /// Encodes it to [`BYTES`](Field::BYTES) bytes.
    fn put(&self, bytes: &mut [u8], order: Order);
}

macro_rules! numbers {
    ($($number:ident),*) => {$(
        impl Field for $number {
            const BYTES: usize = size_of::<$number>();

            #[inline]
            fn take(bytes: &[u8], order: Order) -> $number {
                let mut own = [0; size_of::<$number>()];
                own.copy_from_slice(bytes);
                match order {
                    Order::Little => $number::from_le_bytes(own),
                    Order::Big => $number::from_be_bytes(own),
                }
            }

            #[inline]
            fn put(&self, bytes: &mut [u8], order: Order) {
                bytes.copy_from_slice(&match order {
                    Order::Little => self.to_le_bytes(),
                    Order::Big => self.to_be_bytes(),
                });
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, i8, i16, i32, i64);

impl<T: Field, const N: usize> Field for [T; N] {
    const BYTES: usize = T::BYTES * N;

    #[inline]
    fn take(bytes: &[u8], order: Order) -> [T; N] {
        core::array::from_fn(|index| T::take(&bytes[index * T::BYTES..(index + 1) * T::BYTES], order))
    }

    #[inline]
    fn put(&self, bytes: &mut [u8], order: Order) {
        for (item, place) in self.iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
            item.put(place, order);
        }
    }
}
