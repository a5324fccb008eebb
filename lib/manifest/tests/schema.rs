//! The schemas for editors agree with the reader, as far as a schema can, and with the documentation.
//!
//! `UPDATE_GOLDEN=1 cargo test -p manifest --test schema` rewrites the schemas and the documentation's tables.

use std::fs;
use std::path::{Path, PathBuf};

use boon::{Compiler, SchemaIndex, Schemas};
use manifest::Kind::{Rule, Source};
use manifest::shapes::{Key, Kind, PROGRAM, Presence, SYSTEM, Shape};
use manifest::{Code, SystemFile, schema};
use proptest::prelude::*;
use proptest::sample::Index;

/// Codes of faults in a single value, which editors with the schema must report, too.
const SHOWN: &[manifest::Kind] = &[
    Source(Code::UnknownKey),
    Source(Code::WrongType),
    Source(Code::MissingKey),
    Source(Code::BadName),
    Source(Code::BadVersion),
    Source(Code::UnknownWord),
    Source(Code::BadPath),
    Source(Code::BadText),
    Source(Code::ScriptOrCrate),
    Source(Code::BadModule),
    Source(Code::BadFlag),
    Source(Code::BadPublicKey),
    Source(Code::BadPublishers),
    Source(Code::BadRevocation),
    Rule(install::Code::AbiVersion),
    Rule(install::Code::ListTooLong),
    Rule(install::Code::BadProgramName),
    Rule(install::Code::BadPublisherName),
    Rule(install::Code::SlotPath),
    Rule(install::Code::ProvidePath),
    Rule(install::Code::DeviceName),
    Rule(install::Code::ParameterName),
    Rule(install::Code::ControlCharacter),
    Rule(install::Code::NoSummary),
    Rule(install::Code::ScriptEmpty),
    Rule(install::Code::BadFlag),
    Rule(install::Code::DefaultType),
    Rule(install::Code::DefaultUseless),
    Rule(install::Code::QuotaRange),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_update() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

/// A schema validator.
struct Judge {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Judge {
    fn new(text: &str) -> Judge {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        let value = serde_json::from_str(text).expect("a schema is JSON");
        compiler.add_resource("schema.json", value).expect("a schema has a place");
        let index = compiler.compile("schema.json", &mut schemas).unwrap_or_else(|error| panic!("{error}"));
        Judge { schemas, index }
    }

    fn program() -> Judge {
        Judge::new(&schema::program())
    }

    fn system() -> Judge {
        Judge::new(&schema::system())
    }

    /// Returns the error of the schema, or of TOML itself, for the text.
    fn complaint(&self, text: &str) -> Option<String> {
        let table: toml::Table = match toml::from_str(text) {
            Ok(table) => table,
            Err(error) => return Some(error.to_string()),
        };
        let value = serde_json::to_value(table).expect("TOML without dates is JSON");
        self.schemas.validate(&value, self.index).err().map(|error| format!("{error:#}"))
    }
}

/// The files below a folder that `is_wanted` by their names.
fn files(folder: &Path, is_wanted: &dyn Fn(&str) -> bool, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            files(&path, is_wanted, found);
        } else if is_wanted(&name) {
            found.push(path);
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_committed_schemas_are_those_of_the_reader() {
    for (name, text) in [("program", schema::program()), ("system", schema::system())] {
        let path = root().join(format!("docs/schema/{name}.schema.json"));
        if is_update() {
            fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder can be made");
            fs::write(&path, &text).expect("the schema can be written");
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(committed, text, "{name}: `UPDATE_GOLDEN=1 cargo test -p manifest --test schema` writes it anew");
    }
}

#[test]
fn every_manifest_of_the_tree_is_valid() {
    let (program, system) = (Judge::program(), Judge::system());
    let mut manifests = Vec::new();
    for folder in ["apps", "benches", "drivers", "examples", "services", "tests"] {
        files(&root().join(folder), &|name| name == "manifest.toml", &mut manifests);
    }
    // Programs that must not build may have an invalid manifest.
    manifests.retain(|path| !path.starts_with(root().join("tests/hostile/build")));
    let mut systems = Vec::new();
    files(&root().join("systems"), &|name| name.ends_with(".toml"), &mut systems);
    assert!(manifests.len() > 80 && systems.len() > 15, "{} manifests, {} systems", manifests.len(), systems.len());
    for path in manifests {
        assert_eq!(program.complaint(&read(&path)), None, "{}", path.display());
    }
    for path in systems {
        assert_eq!(system.complaint(&read(&path)), None, "{}", path.display());
    }
}

#[test]
fn mistakes_that_show_in_one_value_are_refused() {
    let mut refused = 0;
    for (folder, judge) in [("program", Judge::program()), ("system", Judge::system())] {
        let mut fixtures = Vec::new();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(folder);
        files(&folder, &|name| name.ends_with(".toml"), &mut fixtures);
        for path in fixtures {
            let name = path.file_stem().expect("a fixture has a name").to_string_lossy().to_uppercase();
            let code = name.split('_').next().unwrap_or_default();
            // Faults in the base of a system are not in the system's own file; of a stack the schema knows the range alone.
            let is_elsewhere = name.ends_with("_IN_THE_BASE") || name.starts_with("I190_STACK");
            if !SHOWN.iter().any(|shown| shown.text() == code) || is_elsewhere {
                continue;
            }
            assert!(judge.complaint(&read(&path)).is_some(), "{} is not refused", path.display());
            refused += 1;
        }
    }
    assert!(refused > 25, "only {refused} fixtures were tried");
}

#[test]
fn each_key_of_each_table_is_held_to_its_type() {
    let head = "[program]\nname = \"a\"\nversion = \"1.2.3\"\nabi = 1\ncategory = \"console\"\nsummary = \"s\"\n";
    let judge = Judge::program();
    assert_eq!(judge.complaint(head), None);
    for shape in PROGRAM.tables().into_iter().filter(|shape| shape.name.starts_with('[') && shape.name != "[program]") {
        for key in shape.keys {
            let text = format!("{head}{}\n{} = 1.5\n", shape.name, key.name);
            let complaint = judge.complaint(&text).unwrap_or_else(|| panic!("no complaint of\n{text}"));
            assert!(complaint.contains(key.name), "{complaint}");
        }
    }
}

/// The tables of both kinds of manifests.
fn shapes() -> Vec<&'static Shape> {
    [PROGRAM.tables(), SYSTEM.tables()].concat().into_iter().filter(|shape| shape.name.starts_with('[')).collect()
}

/// Returns the kind of a value in a word or two.
fn kind_in_words(kind: &Kind) -> String {
    match kind {
        Kind::Text | Kind::SomeText | Kind::Line | Kind::Version | Kind::AtLeast | Kind::Module => "text".into(),
        Kind::Flag => "text".into(),
        Kind::Source => "word or path".into(),
        Kind::Name | Kind::NumberedName | Kind::ProgramName => "name".into(),
        Kind::Path => "path".into(),
        Kind::PathPattern | Kind::PrincipalPattern | Kind::ProgramPattern | Kind::Publishers => "pattern".into(),
        Kind::PublicKey | Kind::Revoked => "digits".into(),
        Kind::Range => "range".into(),
        Kind::Number(_, most) if *most == i64::from(u32::MAX) || *most == i64::from(u16::MAX) => "number".into(),
        Kind::Number(least, most) if least == most => "number".into(),
        Kind::Number(least, most) => format!("{least} to {most}"),
        Kind::Boolean => "boolean".into(),
        Kind::Word(_) => "word".into(),
        Kind::Value => "of the type".into(),
        Kind::List(of) => format!("{}s", kind_in_words(of).trim_end_matches('s')),
        Kind::Setting | Kind::Map(_) | Kind::Table(_) | Kind::Tables(_) => "table".into(),
    }
}

fn row(key: &Key) -> String {
    let default = match key.presence {
        Presence::Required => "required".into(),
        Presence::Default(default) => format!("`{default}`"),
        Presence::Otherwise(words) => words.to_string(),
    };
    format!("| `{}` | {} | {default} | {} |\n", key.name, kind_in_words(&key.kind), key.meaning)
}

/// Regenerates the table below each shape's heading in the page.
fn with_tables(page: &str) -> String {
    let mut page = page.to_string();
    for shape in shapes() {
        let heading = format!("\n### `{}`", shape.name);
        let after = page.find(&heading).unwrap_or_else(|| panic!("docs/manifest.md has no heading of {}", shape.name));
        let table = page[after..].find("\n| key |").expect("below the heading is a table") + after + 1;
        let end = page[table..].find("\n\n").map_or(page.len(), |length| table + length + 1);
        let rows: String = shape.keys.iter().map(row).collect();
        page.replace_range(
            table..end,
            &format!("| key | type | default | meaning |\n| --- | --- | --- | --- |\n{rows}"),
        );
    }
    page
}

#[test]
fn the_documentation_has_the_tables_of_the_reader() {
    let path = root().join("docs/manifest.md");
    let page = read(&path);
    let wanted = with_tables(&page);
    if is_update() {
        fs::write(&path, &wanted).expect("the page can be written");
    }
    for (found, wanted) in read(&path).lines().zip(wanted.lines()) {
        assert_eq!(found, wanted, "`UPDATE_GOLDEN=1 cargo test -p manifest --test schema` writes it anew");
    }
    assert_eq!(read(&path).len(), wanted.len());
}

/// TOML with every default of the table made explicit.
fn defaults(shape: &Shape) -> String {
    let line = |key: &Key| match key.presence {
        Presence::Default(default) => format!("{} = {default}\n", key.name),
        _ => String::new(),
    };
    shape.keys.iter().map(line).collect()
}

#[test]
fn a_default_is_what_holds_where_nothing_is_said() {
    let plain = "[program]\nname = \"a\"\nversion = \"1.2.3\"\nabi = 1\ncategory = \"console\"\nsummary = \"s\"\n";
    let (mut said, mut unsaid) = (plain.to_string(), plain.to_string());
    for shape in PROGRAM.tables().into_iter().filter(|shape| shape.name.starts_with('[')) {
        let required = match shape.name {
            "[program]" => {
                said.push_str(&defaults(shape));
                continue;
            }
            "[code]" => "crate = \".\"\n",
            "[[contract]]" => "name = \"C\"\nuse = \"both\"\n",
            "[[endpoint]]" => "name = \"e\"\ncontract = \"C\"\nside = \"exp\"\nstate = \"S\"\nfrom = \"parent\"\n",
            "[[parameter]]" => "name = \"p\"\ntype = \"string\"\n",
            "[[provide]]" => "path = \"/p\"\ncontract = \"C\"\n",
            "[[device]]" => "name = \"d\"\n",
            "[[requires]]" => "program = \"r\"\n",
            _ => "",
        };
        unsaid.push_str(&format!("{}\n{required}", shape.name));
        said.push_str(&format!("{}\n{required}{}", shape.name, defaults(shape)));
    }
    let read = |text: &str| manifest::program("a.toml", text, None).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    assert_eq!(read(&said).manifest, read(&unsaid).manifest);
    assert!(said.lines().count() > unsaid.lines().count() + 15, "{said}");
}

proptest! {
    /// The schema accepts whatever the reader accepts: an editor reports no false errors.
    #[test]
    fn nothing_that_is_right_is_underlined(
        changes in proptest::collection::vec((any::<Index>(), 0usize..4, "[a-z0-9\"=.,/+*\\[\\]-]{0,3}"), 1..3),
    ) {
        let damage = |text: &str| {
            let mut characters: Vec<char> = text.chars().collect();
            for (place, length, piece) in &changes {
                let start = place.index(characters.len() + 1);
                let end = (start + length).min(characters.len());
                characters.splice(start..end, piece.chars());
            }
            characters.into_iter().collect::<String>()
        };
        let text = damage(include_str!("fixtures/program/good.toml"));
        if let Ok(good) = manifest::program("program.toml", &text, None) {
            prop_assert_eq!(Judge::program().complaint(&text), None, "{}", text);
            let text = damage(include_str!("fixtures/system/good.toml"));
            let file = SystemFile { file: "system.toml".into(), text: text.clone() };
            if manifest::system(file, &|_| None, &[&good.manifest]).is_ok() {
                prop_assert_eq!(Judge::system().complaint(&text), None, "{}", text);
            }
        }
    }
}
