//! Message fields: little-endian numbers, strings with a 2-byte length, data with a 4-byte length.
//!
//! Key types: [`Reader`], [`Writer`], and [`Field`], a type that can occur in a message. Deliberately not here:
//! messages.

use alloc::vec::Vec;

/// A string: a name, target or version. Arbitrary bytes, at most 65,535.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text<'a>(pub &'a [u8]);

/// File data or directory entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data<'a>(pub &'a [u8]);

/// Decodes fields from the front of bytes.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Encodes consecutive fields. Fields that do not fit are counted but not written.
pub(crate) struct Writer<'a> {
    out: &'a mut [u8],
    wanted: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut [u8]) -> Self {
        Self { out, wanted: 0 }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let end = self.wanted.saturating_add(bytes.len());
        if let Some(place) = self.out.get_mut(self.wanted..end) {
            place.copy_from_slice(bytes);
        }
        self.wanted = end;
    }

    /// The bytes written, if everything fit.
    pub(crate) fn finish(self) -> Option<&'a mut [u8]> {
        self.out.get_mut(..self.wanted)
    }
}

/// A type that can occur in a message.
pub(crate) trait Field<'a>: Sized {
    fn read(reader: &mut Reader<'a>) -> Option<Self>;
    fn write(&self, writer: &mut Writer<'_>);
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Field<'_> for $number {
            fn read(reader: &mut Reader<'_>) -> Option<Self> {
                reader.bytes(size_of::<$number>())?.try_into().ok().map(<$number>::from_le_bytes)
            }

            fn write(&self, writer: &mut Writer<'_>) {
                writer.bytes(&self.to_le_bytes());
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64);

impl<'a> Field<'a> for Text<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let length = u16::read(reader)?;
        reader.bytes(length.into()).map(Text)
    }

    /// A string that is too long makes the message too long for any buffer.
    fn write(&self, writer: &mut Writer<'_>) {
        match u16::try_from(self.0.len()) {
            Ok(length) => {
                length.write(writer);
                writer.bytes(self.0);
            }
            Err(_) => writer.wanted = usize::MAX,
        }
    }
}

impl<'a> Field<'a> for Data<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let length = usize::try_from(u32::read(reader)?).ok()?;
        reader.bytes(length).map(Data)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        match u32::try_from(self.0.len()) {
            Ok(length) => {
                length.write(writer);
                writer.bytes(self.0);
            }
            Err(_) => writer.wanted = usize::MAX,
        }
    }
}

/// A short list preceded by its length, at most [`MAX_NAMES`](crate::MAX_NAMES).
impl<'a, F: Field<'a>> Field<'a> for Vec<F> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let count = usize::from(u16::read(reader)?);
        if count > crate::MAX_NAMES {
            return None;
        }
        (0..count).map(|_| F::read(reader)).collect()
    }

    fn write(&self, writer: &mut Writer<'_>) {
        if self.len() > crate::MAX_NAMES {
            writer.wanted = usize::MAX;
            return;
        }
        (self.len() as u16).write(writer);
        self.iter().for_each(|field| field.write(writer));
    }
}
