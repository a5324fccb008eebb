//! All diagnostics as rendered: a contract file per mistake, with the expected message beside it.
//!
//! `UPDATE_GOLDEN=1 cargo test -p lang` rewrites the messages. A file is named after its code; one named `ok_...` has
//! no errors.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lang::{Code, Colours, SourceFile};

fn fixtures() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let entries = std::fs::read_dir(&folder).expect("the folder of fixtures");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "contract"));
    files.sort();
    files
}

#[test]
fn each_mistake_gives_its_message() {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for path in fixtures() {
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a UTF-8 name").to_string();
        let text = std::fs::read_to_string(&path).expect("a fixture");
        let compiled = lang::compile(&[SourceFile::new(format!("{name}.contract"), text)]);
        let rendered = compiled.render(Colours::Never);
        let golden = path.with_extension("txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&golden, &rendered).expect("the golden file is written");
        }
        if std::fs::read_to_string(&golden).unwrap_or_default() != rendered {
            wrong.push(format!("{name} differs from its .txt; now:\n{rendered}"));
        }
        let codes: BTreeSet<String> = compiled.diagnostics.iter().map(|d| d.code.text().to_lowercase()).collect();
        let about = name.split('_').next().unwrap_or("").to_string();
        if about == "ok" && compiled.unit.is_none() {
            wrong.push(format!("{name} has errors:\n{rendered}"));
        } else if about != "ok" && !codes.contains(&about) {
            wrong.push(format!("{name} does not show {about}:\n{rendered}"));
        }
        let has_errors = compiled.diagnostics.iter().any(lang::Diagnostic::is_error);
        assert_eq!(compiled.unit.is_none(), has_errors, "{name}: a unit exactly where there are no errors");
        for diagnostic in &compiled.diagnostics {
            assert!(!diagnostic.remedy.is_empty(), "{name}: {:?} says what to do", diagnostic.code);
        }
        seen.extend(codes);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for code in Code::ALL {
        assert!(seen.contains(&code.text().to_lowercase()), "no fixture shows {}", code.text());
    }
}

#[test]
fn codes_differ() {
    let codes: BTreeSet<&str> = Code::ALL.iter().map(|code| code.text()).collect();
    assert_eq!(codes.len(), Code::ALL.len());
}

#[test]
fn every_code_is_documented() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/contract-language.md");
    let text = std::fs::read_to_string(&path).expect("the page of the language");
    let marker = "## Errors and warnings\n";
    let page = text.split(marker).next().unwrap_or("").trim_end();
    let mut wanted =
        format!("{page}\n\n{marker}\n`lang/tests/fixtures` has an example of each, with its diagnostics.\n\n");
    for code in Code::ALL {
        wanted.push_str(&format!("- {} {}\n", code.text(), code.title()));
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &wanted).expect("the page is written");
    }
    assert_eq!(std::fs::read_to_string(&path).expect("the page"), wanted, "{}", path.display());
}
