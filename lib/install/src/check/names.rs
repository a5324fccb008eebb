//! Look-alike names.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::code::Code;
use crate::installed::{Installed, Program};
use crate::report::Finding;

/// Names shorter than this are not compared by edit distance.
const SIMILAR_LENGTH: usize = 4;
/// Maximum length of a name in bytes.
const NAME_BYTES: usize = 63;

/// Returns a name with characters replaced by their look-alikes.
fn skeleton(name: &str) -> String {
    let letters = name.chars().map(|letter| match letter {
        '1' | 'i' => 'l',
        '0' => 'o',
        '5' => 's',
        '2' => 'z',
        '8' => 'b',
        other => other,
    });
    // Pairs are replaced after single letters: `c1` is `cl`, which looks like `d`.
    let letters: String = letters.collect();
    letters.replace("rn", "m").replace("vv", "w").replace("cl", "d").replace('-', "")
}

/// Returns whether the names differ by one edit: a letter changed, added or removed, or two adjacent ones swapped.
fn one_edit_apart(one: &str, other: &str) -> bool {
    let (short, long) =
        if one.len() <= other.len() { (one.as_bytes(), other.as_bytes()) } else { (other.as_bytes(), one.as_bytes()) };
    let same = short.iter().zip(long).take_while(|(left, right)| left == right).count();
    let rest = |skip_short: usize, skip_long: usize| short.get(same + skip_short..) == long.get(same + skip_long..);
    match long.len() - short.len() {
        0 if same == short.len() => false,
        0 => {
            let swapped = short.get(same) == long.get(same + 1) && short.get(same + 1) == long.get(same);
            rest(1, 1) || (swapped && rest(2, 2))
        }
        1 => rest(0, 1),
        _ => false,
    }
}

/// Returns the reason why one name may be confused with the other, if any.
fn likeness(one: &str, other: &str) -> Option<&'static str> {
    if one == other {
        return None;
    }
    if skeleton(one) == skeleton(other) {
        return Some("they look the same at a glance");
    }
    let long = one.len().min(other.len()) >= SIMILAR_LENGTH;
    (long && one_edit_apart(one, other)).then_some("they differ in one letter")
}

/// Returns the reason why a name may be confused with that of a root, a name or a pattern `name-*`, if any.
fn likeness_of_root(name: &str, publishers: &str) -> Option<&'static str> {
    let Some(family) = publishers.strip_suffix("-*") else {
        return if publishers == "*" { None } else { likeness(name, publishers) };
    };
    let beginnings = || name.match_indices('-').map(|(end, _)| &name[..end]).chain([name]);
    if beginnings().any(|beginning| beginning == family) {
        return None;
    }
    beginnings().find_map(|beginning| likeness(beginning, family))
}

/// Returns a finding if the name of the program or its publisher resembles that of another installed one or of a root.
/// Publishers with the same signing key are the same, under any name.
pub fn findings(installed: &Installed, program: &Program) -> Vec<Finding> {
    let manifest = &program.manifest;
    let others = || installed.programs.iter().filter(|other| other.manifest.publisher != manifest.publisher);
    let mut findings = Vec::new();
    let alike = others()
        .filter(|other| other.key != program.key)
        .find_map(|other| Some((&other.manifest.publisher, likeness(&manifest.publisher, &other.manifest.publisher)?)));
    let alike = alike.or_else(|| {
        let roots = &installed.system.trust.roots;
        if roots.iter().any(|root| root.publishers == manifest.publisher) {
            // A publisher with its own root is no look-alike.
            return None;
        }
        let mut others = roots.iter().filter(|root| root.key != program.key);
        others.find_map(|root| Some((&root.publishers, likeness_of_root(&manifest.publisher, &root.publishers)?)))
    });
    if let Some((other, why)) = alike {
        let what = format!("the publisher `{}` is not `{other}`, but {why}", manifest.publisher);
        let remedy = "make sure of who made it; to trust it, it has to come under a name of its own";
        findings.push(Finding::new(Code::LookAlikePublisher, &manifest.name, what, remedy));
    }
    let same = others().find(|other| {
        other.manifest.name != manifest.name && skeleton(&other.manifest.name) == skeleton(&manifest.name)
    });
    if let Some(other) = same {
        let other = other.manifest.principal();
        let what = format!("`{}` is not `{other}`, but looks the same at a glance", manifest.principal());
        findings.push(Finding::new(Code::LookAlikeProgram, &manifest.name, what, "ask its publisher for another name"));
    }
    findings
}

/// Returns a finding if a text is invalid as a program's name.
pub fn no_name(text: &str) -> Option<Finding> {
    if manifest_model::is_name(text) {
        return None;
    }
    let what = match text.len() {
        0 => "a program without a name there cannot be".into(),
        1..=NAME_BYTES => format!("{text:?} cannot be the name of a program"),
        bytes => format!("a text of {bytes} bytes cannot be the name of a program"),
    };
    Some(Finding::new(
        Code::BadProgramName,
        "",
        what,
        "write small letters, digits and hyphens, a letter first, 63 at most",
    ))
}

/// Returns the installed program with the name most similar to this one.
pub fn nearest<'i>(installed: &'i Installed, name: &str) -> Option<&'i str> {
    let mut names = installed.programs.iter().map(|program| program.manifest.name.as_str());
    names.find(|other| likeness(name, other).is_some())
}

/// Returns an installed program of another publisher with a similar name, for a note.
pub fn similar<'i>(installed: &'i Installed, program: &Program) -> Option<&'i str> {
    let manifest = &program.manifest;
    let mut others = installed.programs.iter().filter(|other| other.manifest.publisher != manifest.publisher);
    others
        .find(|other| likeness(&manifest.name, &other.manifest.name).is_some())
        .map(|other| other.manifest.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::{likeness, likeness_of_root};

    #[test]
    fn names_that_people_take_for_each_other() {
        for (one, other, expected) in [
            ("singularity", "singularity", false),
            ("singularity", "singu1arity", true),
            ("singularity", "s1ngu1ar1ty", true),
            ("singularity", "singuiarity", true),
            ("singularity", "singularty", true),
            ("singularity", "singularityy", true),
            ("singularity", "signularity", true),
            ("singularity", "singular-ity", true),
            ("modern", "modem", true),
            ("acme", "acrne", true),
            ("acme", "acne", true),
            ("acme", "zone", false),
            ("acme", "acmecorp", false),
            ("ls", "ln", false),
            ("cp", "cat", false),
            ("vvide", "wide", true),
            // A pair with one letter replaced.
            ("cloud-tools", "doud-tools", true),
            ("c1oud-tools", "doud-tools", true),
            ("ci0ud-t00ls", "doud-tools", true),
        ] {
            assert_eq!(likeness(one, other).is_some(), expected, "{one} {other}");
            assert_eq!(likeness(other, one).is_some(), expected, "{other} {one}");
        }
    }

    #[test]
    fn names_that_people_take_for_one_of_a_root() {
        for (name, publishers, expected) in [
            ("acme", "acme", false),
            ("acrne", "acme", true),
            ("acrne", "*", false),
            ("singular-tools", "singular-*", false),
            ("s1ngular-tools", "singular-*", true),
            ("s1ngular", "singular-*", true),
            ("singulra-tools", "singular-*", true),
            ("other-tools", "singular-*", false),
        ] {
            assert_eq!(likeness_of_root(name, publishers).is_some(), expected, "{name} {publishers}");
        }
    }
}
