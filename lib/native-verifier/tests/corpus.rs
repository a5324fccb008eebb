//! Larger modules, where there are any: those that are built for the WASI test suite. `WASI_TESTSUITE` names its folder.
mod common;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use wasm_record::{Import, ImportKind, Imports, Signature, ValueType};
use wasmparser::{Parser, Payload, TypeRef, ValType};

/// Size of all modules that are compiled unless `--ignored` asks for all, in bytes.
const SMALL: usize = 300_000;

fn modules(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            modules(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "wasm") {
            found.push(path);
        }
    }
}

/// The modules of the suite, the smallest first.
fn suite() -> Vec<Vec<u8>> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/wasi-testsuite");
    let folder = std::env::var_os("WASI_TESTSUITE").map_or(beside, PathBuf::from);
    let mut found = Vec::new();
    modules(&folder.join("tests"), &mut found);
    let mut all: Vec<Vec<u8>> = found.iter().map(|path| std::fs::read(path).expect("a file")).collect();
    all.sort_by_key(Vec::len);
    all
}

/// A template that offers whatever functions a module imports.
fn imports(module: &[u8]) -> Imports {
    let (mut types, mut imports) = (Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(module) {
        match payload.expect("a module") {
            Payload::TypeSection(section) => {
                types.extend(section.into_iter_err_on_gc_types().map(|kind| kind.expect("a function's type")));
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import.expect("an import");
                    let TypeRef::Func(index) = import.ty else { panic!("an import that is no function") };
                    let kinds = |kinds: &[ValType]| kinds.iter().map(value_type).collect();
                    let of = &types[index as usize];
                    let signature = Signature { parameters: kinds(of.params()), results: kinds(of.results()) };
                    let kind = ImportKind::Function(signature);
                    imports.push(Import { module: import.module.into(), name: import.name.into(), kind });
                }
            }
            _ => {}
        }
    }
    Imports(imports)
}

fn value_type(kind: &ValType) -> ValueType {
    match kind {
        ValType::I32 => ValueType::I32,
        ValType::I64 => ValueType::I64,
        ValType::F32 => ValueType::F32,
        ValType::F64 => ValueType::F64,
        ValType::V128 => ValueType::V128,
        other => panic!("{other:?}"),
    }
}

fn proven(modules: &[Vec<u8>]) {
    let (mut functions, mut bytes, mut time) = (0, 0, Duration::ZERO);
    for (module, bounds) in modules.iter().flat_map(|module| common::BOUNDS.map(|bounds| (module, bounds))) {
        let linked = common::compile(module, &imports(module), bounds).expect("compiles");
        let start = Instant::now();
        let outcome = common::verify(&linked);
        time += start.elapsed();
        bytes += linked.text.len();
        match outcome {
            Ok(report) => functions += report.functions + report.entries,
            Err(why) => panic!("{why}\n{}", common::around(&linked, why.address)),
        }
    }
    if bytes > 0 {
        let rate = time.as_secs_f64() / bytes as f64 * 1e6;
        println!("{} modules, {functions} functions, {bytes} bytes of code: {rate:.3} s/MB", modules.len());
    }
}

/// The programs of others that stand in the repository.
#[test]
#[ignore = "takes minutes, as the compiler is not optimized in tests"]
fn ports() {
    let mut found = Vec::new();
    modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ports"), &mut found);
    assert!(!found.is_empty(), "no module");
    proven(&found.iter().map(|path| std::fs::read(path).expect("a file")).collect::<Vec<_>>());
}

#[test]
fn small_modules() {
    let mut all = suite();
    let mut sum = 0;
    all.retain(|module| {
        sum += module.len();
        sum < SMALL
    });
    proven(&all);
}

#[test]
#[ignore = "takes minutes, as the compiler is not optimized in tests"]
fn all_modules() {
    proven(&suite());
}
