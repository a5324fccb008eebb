//! Compiles the C code of programs, with the host's C compiler, to a static library that the entry stub links.
//!
//! The compiler gets the program's own files, the headers of `sip/c/include`, and headers written for the program: the
//! kernel's functions, its contracts, and what its manifest gives it. It is asked which files it has read, and any other
//! is refused, as for Rust. C code cannot be held to types, so the image is marked as unsafe by its manifest. Neighbours:
//! `builder` above, `lang` writes the headers of contracts. Deliberately not here: linking.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use manifest::Program as ProgramManifest;
use manifest_model::Side;
use package_check::sha256;

use crate::cargo::{Metadata, Package};
use crate::contracts::{ContractUnits, VisibleContracts};
use crate::failure::{Failure, Outcome};
use crate::host_tools;
use crate::keys::hexadecimal;
use crate::programs::Program;
use crate::repository::{Repository, read_text, write_if_changed};
use crate::source_rules;
use crate::stubs::C_LIBRARIES;

/// Headers of the runtime, in the repository.
const HEADERS: &str = "sip/c/include";
/// Flags of the compiler: what an image may contain, in the terms of its check. Frames are probed page by page, and there
/// is no state of the x87 unit or of AVX.
const FLAGS: [&str; 24] = [
    "-std=c11",
    "-O2",
    "-ffreestanding",
    "-fno-builtin",
    "-fPIE",
    "-fvisibility=hidden",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-common",
    "-fno-plt",
    "-fno-stack-protector",
    "-fstack-clash-protection",
    "-fcf-protection=none",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-fno-exceptions",
    "-fno-math-errno",
    "-fno-tree-loop-distribute-patterns",
    "-fno-ident",
    "-march=x86-64",
    "-mfpmath=sse",
    "-nostdinc",
    "-Wall",
    "-Wextra",
];
/// Feature of a program's crate that adds crates with C code.
const FEATURE: &str = "c-sources";
/// Directives of an assembler that read files, or could hide such a directive.
const DIRECTIVES: [&str; 6] = [".incbin", ".include", ".macro", ".irp", ".altmacro", ".rept"];

/// Compiles the C code of the programs that have any; returns them with the names of their libraries.
///
/// # Errors
/// There is no C compiler, the code does not compile, or it reads files of others.
pub fn compile<'a>(
    repository: &Repository,
    selected: &[&'a Program],
    crates: &CCrates,
) -> Outcome<Vec<(&'a Program, String)>> {
    let with_c: Vec<&&Program> = selected.iter().filter(|program| !program.c.is_empty()).collect();
    if with_c.is_empty() {
        return Ok(Vec::new());
    }
    let compiler = Compiler::find()?;
    let units = ContractUnits::compile(repository)?;
    with_c
        .into_iter()
        .map(|program| {
            let visible = units.visible_from(program.contract_folder());
            let manifest = units.manifest(repository, &program.manifest(), program.contract_folder())?;
            let crates = crates.of(program).iter().map(|one| one.folder.clone()).collect();
            let build = Build { repository, program, compiler: &compiler, crates };
            Ok((*program, build.library(&units, &visible, &manifest)?))
        })
        .collect()
}

/// Describes the compiler and its flags for a bill of materials.
///
/// # Errors
/// There is no C compiler.
pub fn compiler_in_words() -> Outcome<String> {
    Ok(format!("{} {}", Compiler::find()?.version, FLAGS.join(" ")))
}

/// The host's C compiler.
struct Compiler {
    path: PathBuf,
    version: String,
    /// Folder of the headers that belong to it.
    headers: PathBuf,
}

impl Compiler {
    fn find() -> Outcome<Compiler> {
        let path = host_tools::find("cc").ok_or_else(|| {
            Failure::new("there is no C compiler `cc`").remedy("install gcc, on Debian with `apt-get install gcc`")
        })?;
        let ask = |argument: &str| {
            let output = Command::new(&path).arg(argument).stdin(Stdio::null()).output();
            let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
            let first = text.and_then(|text| String::from_utf8_lossy(&text).lines().next().map(String::from));
            first.ok_or_else(|| Failure::new(format!("`cc {argument}` prints nothing")).remedy("install gcc again"))
        };
        let headers = PathBuf::from(ask("-print-file-name=include")?);
        Ok(Compiler { version: ask("--version")?, headers, path })
    }
}

struct Build<'a> {
    repository: &'a Repository,
    program: &'a Program,
    compiler: &'a Compiler,
    /// Folders of other crates that its code includes files of.
    crates: Vec<PathBuf>,
}

/// A crate whose C code a program includes. It is a dependency that the feature [`FEATURE`] of the program's crate adds,
/// so that cargo fetches and checks it, and never compiles it.
pub struct CCrate {
    /// Its package.
    pub package: Package,
    /// The folder in it.
    pub folder: PathBuf,
}

/// The crates whose C code programs include.
#[derive(Default)]
pub struct CCrates(BTreeMap<String, Vec<CCrate>>);

impl CCrates {
    /// Finds those of the programs.
    ///
    /// # Errors
    /// A manifest names a folder that there is not.
    pub fn find(repository: &Repository, programs: &[&Program]) -> Outcome<CCrates> {
        let with_headers = programs.iter().filter(|program| !program.c_headers.is_empty());
        with_headers
            .map(|program| Ok((program.name.clone(), included(repository, program)?)))
            .collect::<Outcome<_>>()
            .map(CCrates)
    }

    /// Returns those of one program.
    pub fn of(&self, program: &Program) -> &[CCrate] {
        self.0.get(&program.name).map_or(&[], Vec::as_slice)
    }
}

fn included(repository: &Repository, program: &Program) -> Outcome<Vec<CCrate>> {
    let metadata = Metadata::with_feature(&program.contract_folder().join("Cargo.toml"), FEATURE)?;
    let named = |text: &String| {
        let found = text.split_once(':').and_then(|(name, folder)| {
            let package = metadata.packages.iter().find(|package| package.name == name && package.source.is_some())?;
            let folder = package.folder().join(folder);
            (source_rules::lies_in(&folder, package.folder()) && folder.is_dir())
                .then(|| CCrate { package: package.clone(), folder })
        });
        found.ok_or_else(|| {
            Failure::new(format!(
                "{} has the C headers `{text}`, which no crate of its feature `{FEATURE}` has",
                repository.shown(&program.manifest())
            ))
            .remedy("write `CRATE:FOLDER`, and add the crate to Cargo.toml: `c-sources = [\"dep:CRATE\"]`")
        })
    };
    program.c_headers.iter().map(named).collect()
}

impl Build<'_> {
    /// Builds the library, unless there is one of the same sources; returns its name.
    fn library(
        &self,
        units: &ContractUnits,
        visible: &VisibleContracts<'_>,
        manifest: &ProgramManifest,
    ) -> Outcome<String> {
        let libraries = self.repository.output(C_LIBRARIES);
        let folder = libraries.join(&self.program.name);
        write_headers(&folder, units, visible, manifest)?;
        let mut sources = self.sources()?;
        sources.push(folder.join("contracts.c"));
        let name = format!("{}-{}", self.program.name, &self.digest(&folder)?[..16]);
        let library = libraries.join(format!("lib{name}.a"));
        if library.is_file() {
            return Ok(name);
        }
        let objects: Outcome<Vec<PathBuf>> =
            sources.iter().enumerate().map(|(number, source)| self.object(&folder, number, source)).collect();
        let unfinished = folder.join("library.a");
        // `ar` adds to an archive that is there.
        let _ = std::fs::remove_file(&unfinished);
        let mut archive = Command::new("ar");
        archive.arg("rcsD").arg(&unfinished).args(objects?);
        run(archive, "pack", &library)?;
        std::fs::rename(&unfinished, &library).map_err(|error| Failure::file("write", &library, &error))?;
        Ok(name)
    }

    /// The C files that the manifest names, sorted within each of its folders.
    fn sources(&self) -> Outcome<Vec<PathBuf>> {
        let Program { folder, name, .. } = self.program;
        let mut sources = Vec::new();
        for named in &self.program.c {
            let path = folder.join(named);
            if !source_rules::lies_in(&path, folder) {
                return Err(Failure::new(format!(
                    "`{name}` has the C code {}, which is not in its folder",
                    named.display()
                ))
                .remedy("name files or folders beside its manifest, without links"));
            }
            if !path.is_dir() {
                sources.push(path);
                continue;
            }
            let entries = std::fs::read_dir(&path).map_err(|error| Failure::file("read", &path, &error))?;
            let files = entries.flatten().map(|entry| entry.path());
            let mut files: Vec<PathBuf> =
                files.filter(|file| file.extension().is_some_and(|extension| extension == "c")).collect();
            files.sort();
            sources.extend(files);
        }
        Ok(sources)
    }

    /// A digest of everything that the library is made of.
    fn digest(&self, headers: &Path) -> Outcome<String> {
        let mut bytes = Vec::new();
        for word in FLAGS.iter().copied().chain([self.compiler.version.as_str()]) {
            bytes.extend_from_slice(word.as_bytes());
            bytes.push(0);
        }
        let runtime = self.repository.base().join(HEADERS);
        let own = [self.program.folder.as_path(), headers, &runtime];
        for folder in own.into_iter().chain(self.crates.iter().map(PathBuf::as_path)) {
            add_files(folder, &mut bytes)?;
        }
        Ok(hexadecimal(&sha256(&bytes)))
    }

    /// Compiles a file, by way of assembly that shows whether it reads another.
    fn object(&self, folder: &Path, number: usize, source: &Path) -> Outcome<PathBuf> {
        let file = |extension: &str| folder.join(format!("{number}.{extension}"));
        let (assembly, list, object) = (file("s"), file("d"), file("o"));
        let runtime = self.repository.base().join(HEADERS);
        let mut command = Command::new(&self.compiler.path);
        command.args(FLAGS).arg("-S").arg("-isystem").arg(&runtime).arg("-isystem").arg(folder);
        for folder in &self.crates {
            command.arg("-isystem").arg(folder);
        }
        command.arg("-isystem").arg(&self.compiler.headers).arg("-MD").arg("-MF").arg(&list);
        let others = self.crates.iter().map(PathBuf::as_path);
        for within in [self.program.folder.as_path(), folder].into_iter().chain(others) {
            command.arg(format!("-ffile-prefix-map={}/=", within.display()));
        }
        command.arg("-o").arg(&assembly).arg(source);
        run(command, "compile", source)?;
        self.refuse_other_files(&list, source, folder)?;
        let text = std::fs::read(&assembly).map_err(|error| Failure::file("read", &assembly, &error))?;
        let text = String::from_utf8_lossy(&text).to_ascii_lowercase();
        if let Some(directive) = DIRECTIVES.iter().find(|directive| text.contains(**directive)) {
            return Err(Failure::new(format!(
                "{} has the assembler directive `{directive}`, by which files come into an image unseen",
                self.repository.shown(source)
            ))
            .remedy("write the data as an array"));
        }
        let mut command = Command::new(&self.compiler.path);
        command.arg("-c").arg("-o").arg(&object).arg(&assembly);
        run(command, "assemble", source)?;
        Ok(object)
    }

    /// Refuses a source that has included a file of neither the program nor the runtime.
    fn refuse_other_files(&self, list: &Path, source: &Path, headers: &Path) -> Outcome<()> {
        let runtime = self.repository.base().join(HEADERS);
        let allowed = [self.program.folder.as_path(), headers, &runtime, &self.compiler.headers];
        let allowed = allowed.into_iter().chain(self.crates.iter().map(PathBuf::as_path));
        let allowed: Vec<PathBuf> = allowed.filter_map(|folder| folder.canonicalize().ok()).collect();
        for file in dependencies(&read_text(list)?) {
            let real = file.canonicalize().map_err(|error| Failure::file("find", &file, &error))?;
            if !allowed.iter().any(|folder| real.starts_with(folder)) {
                return Err(Failure::new(format!(
                    "{} includes {}, which belongs to neither the program nor the runtime",
                    self.repository.shown(source),
                    file.display()
                ))
                .remedy("copy what it needs into the program's folder"));
            }
        }
        Ok(())
    }
}

/// The files in a list for make: `target: file file \`.
fn dependencies(list: &str) -> Vec<PathBuf> {
    let files = list.split_once(": ").map_or("", |(_, files)| files).replace("\\\n", " ");
    // A space in a name is escaped.
    let files = files.replace("\\ ", "\0");
    files.split_whitespace().map(|file| PathBuf::from(file.replace('\0', " "))).collect()
}

fn run(mut command: Command, doing: &str, what: &Path) -> Outcome<()> {
    let failed = |details: String| {
        Failure::new(format!("cannot {doing} {}", what.display())).details(details).remedy("fix the errors above")
    };
    // The order of messages does not depend on the reader's language, nor the headers on the reader's folders.
    let command = command.env("LC_ALL", "C").env_remove("CPATH").env_remove("C_INCLUDE_PATH");
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(format!("{}: {error}", command.get_program().display())))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(failed(text.into_owned()));
    }
    eprint!("{text}");
    Ok(())
}

/// Appends names and contents of the C files and headers below a folder.
fn add_files(folder: &Path, bytes: &mut Vec<u8>) -> Outcome<()> {
    let entries = std::fs::read_dir(folder).map_err(|error| Failure::file("read", folder, &error))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add_files(&path, bytes)?;
        } else if path.extension().is_some_and(|extension| ["c", "h", "inc", "def"].iter().any(|one| extension == *one))
        {
            let content = std::fs::read(&path).map_err(|error| Failure::file("read", &path, &error))?;
            for part in [path.file_name().unwrap_or_default().as_encoded_bytes(), &content] {
                bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
                bytes.extend_from_slice(part);
            }
        }
    }
    Ok(())
}

fn write_headers(
    folder: &Path,
    units: &ContractUnits,
    visible: &VisibleContracts<'_>,
    manifest: &ProgramManifest,
) -> Outcome<()> {
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("make the folder", folder, &error))?;
    let names: Vec<&str> = manifest.manifest.contracts.iter().map(|contract| contract.name.as_str()).collect();
    let mut contracts = String::from(
        "/* The contracts of the program's manifest. */\n#ifndef SING_CONTRACTS_H\n#define SING_CONTRACTS_H\n\n#include \"sing.h\"\n\n",
    );
    let mut records = String::from(RECORDS);
    for unit in units.all().filter_map(|(_, compiled)| compiled.unit.as_ref()) {
        let is_seen = |name: &&str| {
            unit.contract(name).is_some_and(|own| visible.get(name).is_some_and(|seen| std::ptr::eq(own, seen)))
        };
        let own: Vec<&str> = names.iter().copied().filter(is_seen).collect();
        if own.is_empty() {
            continue;
        }
        contracts.push_str(&lang::emit_c(unit, &own));
        for contract in own.iter().filter_map(|name| unit.contract(name)) {
            record(&mut records, contract);
        }
    }
    contracts.push_str("\n#endif\n");
    write_if_changed(&folder.join("contracts.h"), contracts.as_bytes())?;
    write_if_changed(&folder.join("contracts.c"), records.as_bytes())?;
    write_if_changed(&folder.join("sing_abi.h"), lang::emit_c_abi().as_bytes())?;
    write_if_changed(&folder.join("program.h"), program_header(manifest).as_bytes())
}

const RECORDS: &str = "/* The contracts that the image was made with; the installer compares them with its manifest. */\n\
    #include <stdint.h>\n\n\
    struct record { uint8_t magic[16]; uint8_t fingerprint[32]; uint64_t tag; };\n";

fn record(out: &mut String, contract: &lang::Contract) {
    let bytes = |bytes: &[u8]| bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        out,
        "\n__attribute__((section(\".sing.contracts\"), used, retain))\n\
         const struct record sing_record_{} = {{\n    {{ {} }},\n    {{ {} }},\n    UINT64_C({:#x}),\n}};\n",
        lang::c_name(&contract.name),
        bytes(image_check::CONTRACT_MAGIC),
        bytes(&contract.fingerprint),
        abi::name_tag(&contract.name),
    );
}

/// `program.h`: what the manifest gives the program.
fn program_header(manifest: &ProgramManifest) -> String {
    let manifest = &manifest.manifest;
    let mut out = String::from(
        "/* What the program gets by its manifest. */\n#ifndef SING_PROGRAM_H\n#define SING_PROGRAM_H\n\n#include \"contracts.h\"\n",
    );
    for (index, slot) in manifest.endpoints.iter().enumerate() {
        let name = lang::c_name(&slot.name);
        let contract = manifest.contracts.get(usize::from(slot.contract)).map_or("", |contract| &contract.name);
        let end = match slot.side {
            Side::Importer => "imp",
            Side::Exporter => "exp",
        };
        let _ = write!(
            out,
            "\n/* Takes the endpoint `{}`, once. SING_NOT_FOUND: the parent gave none. */\n\
             static inline sing_status program_take_{name}({contract}_{end} *into)\n{{\n    \
             sing_answer answer = sing_endpoint_take({index});\n    if (answer.status == SING_OK)\n        \
             *into = ({contract}_{end}){{ answer.value, {state} }};\n    return answer.status;\n}}\n",
            slot.name,
            contract = lang::c_name(contract),
            state = slot.state,
        );
    }
    out.push('\n');
    for (index, parameter) in manifest.parameters.iter().enumerate() {
        let _ = writeln!(
            out,
            "/* {} */\n#define PROGRAM_PARAMETER_{} {index}",
            parameter.help.replace("*/", "* /"),
            lang::c_name(&parameter.name).to_ascii_uppercase()
        );
    }
    out.push_str("\n#endif\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with one C file, and what comes of compiling it.
    fn compiled(code: &str, named: &str) -> Outcome<Vec<u8>> {
        let repository = Repository::find().expect("this is one");
        let folder = tempfile::tempdir().expect("a folder");
        let program = Program {
            name: "wrong".into(),
            folder: folder.path().join("program"),
            category: "console".into(),
            body: crate::programs::Body::Script,
            unsafe_for_tests: false,
            is_template: false,
            unsafe_code: true,
            c: vec![named.into()],
            c_headers: Vec::new(),
        };
        let output = folder.path().join("output");
        std::fs::create_dir_all(program.folder.join("src")).expect("a folder");
        std::fs::create_dir_all(&output).expect("a folder");
        std::fs::write(program.folder.join("src/main.c"), code).expect("a file");
        std::fs::write(folder.path().join("secret.h"), "#define SECRET 1\n").expect("a file");
        std::fs::write(output.join("sing_abi.h"), lang::emit_c_abi()).expect("a file");
        let build =
            Build { repository: &repository, program: &program, compiler: &Compiler::find()?, crates: Vec::new() };
        let sources = build.sources()?;
        assert_eq!(sources, [program.folder.join("src/main.c")]);
        let object = build.object(&output, 0, &sources[0])?;
        Ok(std::fs::read(object).expect("an object"))
    }

    #[test]
    fn what_c_code_may_use_compiles() {
        let code = "#include <stdlib.h>\n#include <string.h>\n#include <assert.h>\n#include <stdarg.h>\n#include <limits.h>\n\
            int sing_main(void) { char *text = malloc(8); assert(text); strcpy(text, \"seven\"); \
            int length = (int)strlen(text); free(text); return length; }\n";
        for named in ["src", "src/main.c", "."] {
            let outcome = compiled(code, if named == "." { "src/." } else { named });
            let object = outcome.unwrap_or_else(|failure| panic!("{named}: {failure}"));
            assert!(object.starts_with(b"\x7fELF"), "{named}");
        }
    }

    #[test]
    fn c_code_gets_no_files_of_others_into_an_image() {
        for (code, part) in [
            ("#include \"../../secret.h\"\n", "which belongs to neither the program nor the runtime"),
            ("#include \"/etc/hostname\"\n", "cannot compile"),
            ("#include <stdio.h>\n", "stdio.h: No such file"),
            ("__asm__(\".incbin \\\"/etc/hostname\\\"\");\n", "`.incbin`"),
            ("__asm__(\".INC\" \"BIN \\\"/etc/hostname\\\"\");\n", "`.incbin`"),
            ("__asm__(\".macro m a\\n.inc\\\\a \\\"/etc/hostname\\\"\\n.endm\\nm bin\");\n", "`.macro`"),
            ("int sing_main(void) { return missing; }\n", "missing"),
        ] {
            let failure = compiled(code, "src").expect_err(code).told_by("sing");
            assert!(failure.contains(part) || failure.contains("which belongs to neither"), "{code}: {failure}");
        }
        for named in ["..", "../secret.h", "/etc/hostname", "missing.c", "src/../../secret.h"] {
            let failure = compiled("", named).expect_err(named).to_string();
            assert!(failure.contains("which is not in its folder"), "{named}: {failure}");
        }
    }

    #[test]
    fn a_list_for_make_names_files() {
        let list = "0.s: /a/main.c \\\n  /b/with\\ space.h /c/sing.h\n";
        let expected = ["/a/main.c", "/b/with space.h", "/c/sing.h"];
        assert_eq!(dependencies(list), expected.map(PathBuf::from));
    }
}
