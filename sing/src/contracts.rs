//! The contracts visible to a program: its own and those of the crates its library depends on by path; each crate's
//! `.contract` files are compiled as one unit.
//!
//! Key types: [`ContractUnits`] for the repository, [`VisibleContracts`] for one program. Deliberately not here:
//! checking contracts; that is the crate `lang`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lang::{Compiled, SourceFile};
use manifest::{Contract, Contracts, Program};

use crate::cargo::{Metadata, Package};
use crate::failure::{Failure, Outcome};
use crate::repository::{Repository, read_text};
use crate::{terminal, wasm};

/// Folders of a crate whose contracts are test data.
const NOT_SEARCHED: [&str; 4] = ["target", "tests", "fixtures", "fuzz"];

/// The compiled contracts of every crate of the repository that has any.
pub struct ContractUnits {
    units: BTreeMap<PathBuf, Compiled>,
    path_dependencies: BTreeMap<PathBuf, Vec<PathBuf>>,
}

impl ContractUnits {
    /// Compiles the contracts of the repository's crates; their errors are kept as diagnostics.
    ///
    /// # Errors
    /// Cargo cannot read the workspace, or a file cannot be read.
    pub fn compile(repository: &Repository) -> Outcome<ContractUnits> {
        let mut packages = Vec::new();
        for workspace in repository.workspaces() {
            packages.extend(Metadata::of_members(&workspace.join("Cargo.toml"))?.packages);
        }
        let mut units = BTreeMap::new();
        let mut path_dependencies = BTreeMap::new();
        for package in packages.iter().filter(|package| may_declare_contracts(package)) {
            let folder = package.folder().to_path_buf();
            let files = contract_files(&folder);
            if !files.is_empty() {
                units.insert(folder.clone(), compile_files(repository, &files)?);
            }
            let built = package.dependencies.iter().filter(|dependency| dependency.kind.as_deref() != Some("dev"));
            path_dependencies.insert(folder, built.filter_map(|dependency| dependency.path.clone()).collect());
        }
        Ok(ContractUnits { units, path_dependencies })
    }

    /// Returns the units by crate folder.
    pub fn all(&self) -> impl Iterator<Item = (&Path, &Compiled)> {
        self.units.iter().map(|(folder, unit)| (folder.as_path(), unit))
    }

    /// Fails with every error of the units, if there are any.
    ///
    /// # Errors
    /// A contract has an error.
    pub fn refuse_errors(&self) -> Outcome<()> {
        let broken: Vec<&Compiled> = self.units.values().filter(|unit| unit.unit.is_none()).collect();
        if broken.is_empty() {
            return Ok(());
        }
        let details: Vec<String> =
            broken.iter().map(|unit| unit.render(terminal::colours(&std::io::stderr()))).collect();
        Err(Failure::new("the contracts have errors").details(details.join("\n")).remedy("fix the errors above"))
    }

    /// Returns the contracts that the manifest of the crate in `folder` can name.
    pub fn visible_from(&self, folder: &Path) -> VisibleContracts<'_> {
        let mut seen = BTreeSet::new();
        let mut open = vec![folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf())];
        let mut contracts = BTreeMap::new();
        while let Some(current) = open.pop() {
            if !seen.insert(current.clone()) {
                continue;
            }
            let unit = self.units.get(&current).and_then(|compiled| compiled.unit.as_ref());
            for contract in unit.iter().flat_map(|unit| &unit.contracts) {
                contracts.entry(contract.name.clone()).or_insert(contract);
            }
            open.extend(self.path_dependencies.get(&current).into_iter().flatten().cloned());
        }
        VisibleContracts { contracts }
    }

    /// Reads and checks the manifest at `path`, which may name the contracts visible from `folder`.
    ///
    /// # Errors
    /// It cannot be read or has errors; the failure lists all of them.
    pub fn manifest(&self, repository: &Repository, path: &Path, folder: &Path) -> Outcome<Program> {
        let mut program = self.own_manifest(repository, path, &self.seen_by(repository, path, folder)?)?;
        if let Some(module) = &program.wasm {
            let folder = wasm::template_folder(repository, &module.template)?;
            let template = self.own_manifest(repository, &folder.join("manifest.toml"), &self.visible_from(&folder))?;
            program.inherit(&template).map_err(|section| {
                let shown = repository.shown(path);
                Failure::new(format!("the manifest {shown} has a WebAssembly module and {section}"))
                    .remedy("take it out: what a module has beside its template is contracts, endpoints and parameters")
            })?;
        }
        Ok(program)
    }

    /// The contracts that the manifest at `path` can name: a module's, any; it has no crate that depends on theirs.
    fn seen_by(&self, repository: &Repository, path: &Path, folder: &Path) -> Outcome<VisibleContracts<'_>> {
        let program = manifest::program(&repository.shown(path).to_string(), &read_text(path)?, None);
        if program.is_ok_and(|program| program.wasm.is_some()) {
            let units = self.units.values().filter_map(|compiled| compiled.unit.as_ref());
            let contracts = units.flat_map(|unit| &unit.contracts).map(|contract| (contract.name.clone(), contract));
            return Ok(VisibleContracts { contracts: contracts.collect() });
        }
        Ok(self.visible_from(folder))
    }

    fn own_manifest(&self, repository: &Repository, path: &Path, visible: &VisibleContracts<'_>) -> Outcome<Program> {
        let shown = repository.shown(path).to_string();
        manifest::program(&shown, &read_text(path)?, Some(visible)).map_err(|diagnostics| {
            Failure::new(format!("the manifest {shown} has errors"))
                .details(diagnostics.render(terminal::colours(&std::io::stderr())))
                .remedy("fix the errors above")
        })
    }

    /// Finds the contract with this name in any unit.
    pub fn find(&self, name: &str) -> Option<&lang::Contract> {
        self.find_in(name).map(|(_, contract)| contract)
    }

    /// Finds the contract with this name, and its unit.
    pub fn find_in(&self, name: &str) -> Option<(&lang::Unit, &lang::Contract)> {
        let mut all = self.units.values().filter_map(|compiled| compiled.unit.as_ref());
        all.find_map(|unit| Some((unit, unit.contract(name)?)))
    }

    /// Returns the names of all contracts, sorted.
    pub fn names(&self) -> Vec<String> {
        let all = self.units.values().filter_map(|compiled| compiled.unit.as_ref());
        let names: BTreeSet<String> =
            all.flat_map(|unit| &unit.contracts).map(|contract| contract.name.clone()).collect();
        names.into_iter().collect()
    }
}

/// The contract files of the contract language's own crate are test data.
fn may_declare_contracts(package: &Package) -> bool {
    !["lang", "sip", "sip-macros", "abi"].contains(&package.name.as_str())
}

/// Compiles these files as one unit.
///
/// # Errors
/// A file cannot be read.
pub fn compile_files(repository: &Repository, files: &[PathBuf]) -> Outcome<Compiled> {
    let sources: Outcome<Vec<SourceFile>> =
        files.iter().map(|path| Ok(SourceFile::new(repository.shown(path).to_string(), read_text(path)?))).collect();
    Ok(lang::compile(&sources?))
}

/// Returns the `.contract` files in a crate's folder, sorted by name.
pub fn contract_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(current) = open.pop() {
        for entry in std::fs::read_dir(&current).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            // Links are not followed, as they could form a cycle.
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                let is_nested_crate = path.join("Cargo.toml").is_file();
                if !is_nested_crate && !NOT_SEARCHED.iter().any(|skipped| name == *skipped) {
                    open.push(path);
                }
            } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "contract") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The contracts that one program can name.
pub struct VisibleContracts<'a> {
    contracts: BTreeMap<String, &'a lang::Contract>,
}

impl<'a> VisibleContracts<'a> {
    /// Returns the contract with this name.
    pub fn get(&self, name: &str) -> Option<&'a lang::Contract> {
        self.contracts.get(name).copied()
    }
}

impl Contracts for VisibleContracts<'_> {
    fn find(&self, name: &str) -> Option<Contract> {
        self.contracts
            .get(name)
            .map(|contract| Contract { fingerprint: contract.fingerprint, automaton: contract.automaton.clone() })
    }

    fn names(&self) -> Vec<String> {
        self.contracts.keys().cloned().collect()
    }
}
