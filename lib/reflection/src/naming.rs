//! Names of manifests as Rust names.

/// The name of a field: `-` becomes `_`; a keyword gets an underscore behind it.
pub fn field(name: &str) -> String {
    let name = name.replace('-', "_");
    // A name that cannot be written raw is not one of the keywords that `syn` refuses as such alone; and it has no
    // editions, the last of which keeps `gen`.
    if syn::parse_str::<syn::Ident>(&name).is_ok() && name != "gen" { name } else { format!("{name}_") }
}

/// The name of a type: `virtio-mmio` is `VirtioMmio`.
pub fn kind(name: &str) -> String {
    let parts = name.split(['-', '_']);
    parts.flat_map(|part| part.chars().take(1).flat_map(char::to_uppercase).chain(part.chars().skip(1))).collect()
}

/// The name of a constant: `virtio-mmio` is `VIRTIO_MMIO`.
pub fn constant(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

/// A name that is to stand in generated code as it is. Anything but an identifier could end what it stands in and go on
/// with code of its own.
pub fn identifier(name: &str) -> Result<&str, String> {
    // Compared, because what is read may have blanks and comments around it.
    let is_identifier = syn::parse_str::<syn::Ident>(name).is_ok_and(|identifier| identifier == name);
    if is_identifier { Ok(name) } else { Err(format!("`{name}` is not a name of Rust")) }
}

/// A path of a manifest as one from the root of all crates, unless it begins with `crate::`.
pub fn path(path: &str) -> String {
    if path.starts_with("crate::") || path.starts_with("::") { path.into() } else { format!("::{path}") }
}

/// A help text as a sentence of documentation.
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
