//! Conversion of manifest names to Rust names.

/// A field name: `-` becomes `_`; keywords get an underscore appended.
pub fn field(name: &str) -> String {
    let name = name.replace('-', "_");
    // `syn` itself rejects only the keywords that cannot be raw identifiers; it is unaware of editions, the last of
    // which reserves `gen`.
    if syn::parse_str::<syn::Ident>(&name).is_ok() && name != "gen" { name } else { format!("{name}_") }
}

/// A type name: `virtio-mmio` is `VirtioMmio`.
pub fn kind(name: &str) -> String {
    let parts = name.split(['-', '_']);
    parts.flat_map(|part| part.chars().take(1).flat_map(char::to_uppercase).chain(part.chars().skip(1))).collect()
}

/// A constant name: `virtio-mmio` is `VIRTIO_MMIO`.
pub fn constant(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

/// Validates a name that is inserted verbatim: anything but an identifier could inject code.
pub fn identifier(name: &str) -> Result<&str, String> {
    // Compared, because parsing ignores surrounding blanks and comments.
    let is_identifier = syn::parse_str::<syn::Ident>(name).is_ok_and(|identifier| identifier == name);
    if is_identifier { Ok(name) } else { Err(format!("`{name}` is not a Rust identifier")) }
}

/// A manifest's path as a global path, unless it begins with `crate::`.
pub fn path(path: &str) -> String {
    if path.starts_with("crate::") || path.starts_with("::") { path.into() } else { format!("::{path}") }
}

/// A help text as a doc comment sentence.
pub fn sentence(help: &str) -> String {
    let mut characters = help.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let stop = if help.ends_with('.') { "" } else { "." };
    format!("{first}{}{stop}", characters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_is_an_identifier() {
        for name in ["START", "start_io", "Ping", "_0"] {
            assert_eq!(identifier(name), Ok(name));
        }
        for name in ["", "a b", "a::b", "Ready<{ 0 }>", "Ready>, pub other: (", "0", "a/**/", "unsafe", " a", "a\n"] {
            assert!(identifier(name).is_err(), "{name}");
        }
    }

    #[test]
    fn names_of_manifests_become_names_of_rust() {
        assert_eq!(field("working-folder"), "working_folder");
        for keyword in ["type", "self", "try", "gen", "async"] {
            assert_eq!(field(keyword), format!("{keyword}_"));
        }
        assert_eq!(kind("virtio-mmio"), "VirtioMmio");
        assert_eq!(constant("nic-0"), "NIC_0");
        assert_eq!(
            (path("sip::device::Device"), path("crate::Map")),
            ("::sip::device::Device".into(), "crate::Map".into())
        );
        assert_eq!((sentence("where paths start"), sentence("Done.")), ("Where paths start.".into(), "Done.".into()));
    }
}
