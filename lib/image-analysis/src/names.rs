//! Names of functions, as people write them.

use alloc::format;
use alloc::string::String;

/// Returns the path of a function from its symbol, without the hash, generic arguments and the brackets of `impl`s:
/// `ring::Queue::take`, `ring::Queue as core::fmt::Debug::fmt`.
pub(crate) fn path(symbol: &str) -> String {
    // The linker distinguishes copies by a suffix that belongs to no symbol of Rust: `.llvm.1234`, `.8`.
    let demangled = format!("{:#}", rustc_demangle::demangle(symbol));
    let end = demangled.rfind('.').filter(|&dot| {
        let suffix = &demangled[dot + 1..];
        !suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_digit())
    });
    plain(demangled.get(..end.unwrap_or(demangled.len())).unwrap_or(&demangled))
}

/// Removes generic arguments, and the brackets around a type at the beginning.
fn plain(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    // `<Type>::function` and `<Type as Trait>::function`; in `<impl Trait for Type>::function`, too.
    if let Some((inner, after)) = rest.strip_prefix('<').and_then(matching) {
        out.push_str(&plain(inner));
        rest = after;
    }
    let mut depth = 0_usize;
    let mut last = ' ';
    for letter in rest.chars() {
        match letter {
            '<' => depth += 1,
            // Not the arrow of a function's type.
            '>' if last != '-' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(letter),
            _ => {}
        }
        last = letter;
    }
    // What was `path::<T>::function`.
    let out = out.replace("::::", "::");
    String::from(out.strip_suffix("::").unwrap_or(&out))
}

/// Splits what follows an opening bracket at its closing one.
fn matching(text: &str) -> Option<(&str, &str)> {
    let mut depth = 1_usize;
    let mut last = ' ';
    for (at, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if last != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((text.get(..at)?, text.get(at + 1..)?));
        }
        last = letter;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paths_without_generics() {
        for (name, expected) in [
            ("virtio_blk::blk::Blk<P,M>::submit", "virtio_blk::blk::Blk::submit"),
            ("<alloc::vec::Vec<_, _>>::remove", "alloc::vec::Vec::remove"),
            ("<alloc::vec::Vec<u8>>::remove::assert_failed", "alloc::vec::Vec::remove::assert_failed"),
            (
                "<sip_virtio::link::Link<R> as virtio::Transport>::get",
                "sip_virtio::link::Link as virtio::Transport::get",
            ),
            ("core::ptr::drop_in_place::<alloc::string::String>", "core::ptr::drop_in_place"),
            ("a::<T>::b", "a::b"),
            ("a::b::<T>", "a::b"),
            ("core::ops::function::FnOnce<fn() -> u32>::call", "core::ops::function::FnOnce::call"),
            ("memcpy", "memcpy"),
            ("<broken", ""),
            ("", ""),
        ] {
            assert_eq!(plain(name), expected, "{name}");
        }
        assert_eq!(path("_ZN3a_b4main17h0123456789abcdefE"), "a_b::main");
        assert_eq!(path("_ZN3a_b4main17h0123456789abcdefE.8"), "a_b::main");
    }
}
