//! Dependencies between the top-level modules of a crate, from the paths in its sources.
//!
//! A module uses another when a path in it begins with `crate::` or enough `super::` and continues with the other's
//! name; the crate root does not count as a module. Deliberately not here: code compiled for tests only.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The modules that each module uses.
#[derive(Default)]
pub struct Graph(BTreeMap<String, BTreeSet<String>>);

/// Tokens of a stream, with lookahead.
type Tokens = Peekable<proc_macro2::token_stream::IntoIter>;

impl Graph {
    /// Reads the sources of a crate: paths relative to its root file's folder, with their texts.
    ///
    /// # Panics
    /// If a text is not Rust.
    pub fn read<'a>(sources: impl IntoIterator<Item = (&'a str, &'a str)>) -> Graph {
        let sources: Vec<_> = sources.into_iter().filter(|(path, _)| !is_for_tests(path)).collect();
        let mut graph = Graph::default();
        for (path, _) in &sources {
            graph.0.entry(module_path(path).first().cloned().unwrap_or_default()).or_default();
        }
        graph.0.remove("");
        for (path, text) in sources {
            let module = module_path(path);
            let Some(name) = module.first() else { continue };
            let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
            let mut used = BTreeSet::new();
            scan(tokens, &module, &mut used);
            used.retain(|other| other != name && graph.0.contains_key(other));
            graph.0.entry(name.clone()).or_default().extend(used);
        }
        graph
    }

    /// The modules and the modules that each uses directly.
    pub fn uses(&self) -> impl Iterator<Item = (&str, &BTreeSet<String>)> {
        self.0.iter().map(|(name, used)| (name.as_str(), used))
    }

    /// The largest strongly connected set of modules; empty without a cycle.
    pub fn largest_cycle(&self) -> BTreeSet<&str> {
        let reach: BTreeMap<&str, BTreeSet<&str>> =
            self.0.keys().map(|name| (name.as_str(), self.reach(name))).collect();
        let cycle = |name: &str| reach[name].iter().copied().filter(|&other| reach[other].contains(name)).collect();
        self.0.keys().map(|name| cycle(name)).max_by_key(BTreeSet::len).unwrap_or_default()
    }

    /// The modules that this one uses, transitively.
    fn reach<'a>(&'a self, from: &'a str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut open = vec![from];
        while let Some(next) = open.pop() {
            open.extend(self.0[next].iter().map(String::as_str).filter(|&used| found.insert(used)));
        }
        found
    }
}

fn is_for_tests(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.ends_with("tests.rs") || file.starts_with("test_") || path.contains("/tests/")
}

/// The module path of a file: `a/mod.rs` and `a.rs` are `a`, `lib.rs` is the root.
fn module_path(path: &str) -> Vec<String> {
    let mut module: Vec<String> = path.trim_end_matches(".rs").split('/').map(String::from).collect();
    if module.last().is_some_and(|last| last == "mod") || module == ["lib"] {
        module.pop();
    }
    module
}

/// Adds the top-level names of all paths in the tokens of a module.
fn scan(tokens: TokenStream, module: &[String], used: &mut BTreeSet<String>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(hash) if hash.as_char() == '#' => skip_if_for_tests(&mut tokens),
            TokenTree::Group(group) => scan(group.stream(), module, used),
            TokenTree::Ident(ident) if ident == "crate" => follow(&mut tokens, &[], used),
            TokenTree::Ident(ident) if ident == "super" => {
                let parent = &module[..module.len().saturating_sub(1)];
                follow(&mut tokens, parent, used);
            }
            _ => {}
        }
    }
}

/// After a `#`: skips an item or statement that is compiled for tests only, up to its `;` or `{}`.
fn skip_if_for_tests(tokens: &mut Tokens) {
    let is_for_tests = matches!(tokens.peek(), Some(TokenTree::Group(attribute))
        if attribute.stream().to_string().replace(' ', "") == "cfg(test)");
    if !is_for_tests {
        return;
    }
    for token in tokens.by_ref() {
        match token {
            TokenTree::Punct(end) if end.as_char() == ';' => return,
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => return,
            _ => {}
        }
    }
}

/// After a name that resolves to the module `base`: adds the top-level name that the path continues with, or the names
/// of a group.
fn follow(tokens: &mut Tokens, base: &[String], used: &mut BTreeSet<String>) {
    for _ in 0..2 {
        if !matches!(tokens.peek(), Some(TokenTree::Punct(colon)) if colon.as_char() == ':') {
            return;
        }
        tokens.next();
    }
    match tokens.peek() {
        Some(TokenTree::Ident(ident)) if ident == "super" => {
            tokens.next();
            follow(tokens, &base[..base.len().saturating_sub(1)], used);
        }
        Some(TokenTree::Ident(ident)) => {
            used.insert(base.first().cloned().unwrap_or_else(|| ident.to_string()));
        }
        Some(TokenTree::Group(group)) => {
            let stream = group.stream();
            let mut is_first = true;
            for token in stream {
                match token {
                    TokenTree::Punct(comma) if comma.as_char() == ',' => is_first = true,
                    TokenTree::Ident(ident) if is_first => {
                        used.insert(base.first().cloned().unwrap_or_else(|| ident.to_string()));
                        is_first = false;
                    }
                    _ => is_first = false,
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_over_three_modules_is_found_and_what_leads_to_it_is_not_in_it() {
        let graph = Graph::read([
            ("lib.rs", "mod a; mod b; mod c; mod d; use crate::a::f;"),
            ("a/mod.rs", "mod inner; use crate::{b::{self, g}, d};"),
            ("a/inner.rs", "fn f() { super::super::d::h(); super::f() }"),
            ("b.rs", "macro_rules! m { () => { $crate::c::X }; }"),
            ("c.rs", "use super::a;"),
            ("d.rs", ""),
            ("e.rs", "use crate::a;"),
        ]);
        assert_eq!(graph.largest_cycle(), BTreeSet::from(["a", "b", "c"]));
    }

    #[test]
    fn what_is_for_tests_counts_for_nothing() {
        let graph = Graph::read([
            ("a.rs", "use crate::b; #[cfg(not(test))] fn f() {}"),
            (
                "b.rs",
                "#[cfg(test)] use crate::a; fn f() { #[cfg(test)] crate::a::f(); } #[cfg(test)] mod tests { use crate::a; }",
            ),
            ("b/tests.rs", "use crate::a;"),
            ("test_machine.rs", "use crate::{a, b};"),
        ]);
        assert!(graph.largest_cycle().is_empty());
        let graph = Graph::read([("a.rs", "use crate::b;"), ("b.rs", "#[cfg(not(test))] use crate::a;")]);
        assert_eq!(graph.largest_cycle().len(), 2);
    }
}
