//! `contracts!`: compiles contract files to Rust modules.

use std::path::Path;

use lang::{Colours, SourceFile};
use proc_macro2::TokenStream;
use reflection::expand;

/// Expands `contracts!("file-or-folder", ...)`.
pub fn expand(input: TokenStream) -> TokenStream {
    expand::code_or_error(expanded(input))
}

const USAGE: &str = "write contracts!(\"a.contract\", \"folder\"), with paths from the folder of Cargo.toml";

fn expanded(input: TokenStream) -> Result<TokenStream, String> {
    let paths = expand::texts(input, USAGE)?;
    if paths.is_empty() {
        return Err(USAGE.into());
    }
    generate(&expand::crate_folder("contracts!")?, &paths)
}

fn generate(root: &Path, paths: &[String]) -> Result<TokenStream, String> {
    let mut files = Vec::new();
    for path in paths {
        for path in contract_files(root, path)? {
            let text = std::fs::read_to_string(root.join(&path))
                .map_err(|error| format!("the contract file {path} cannot be read: {error}"))?;
            files.push(SourceFile::new(path, text));
        }
    }
    let compiled = lang::compile(&files);
    let Some(unit) = &compiled.unit else {
        return Err(format!("the contracts have errors\n\n{}", compiled.render(Colours::Never)));
    };
    let mut code = expand::parsed("contracts!", &lang::emit_rust(unit))?;
    code.extend(files.iter().map(|file| expand::watched(&root.join(&file.path))));
    Ok(code)
}

/// Returns the path itself, or for a folder its `.contract` files, sorted by name.
fn contract_files(root: &Path, path: &str) -> Result<Vec<String>, String> {
    let whole = root.join(path);
    if !whole.is_dir() {
        return Ok(vec![path.to_string()]);
    }
    let unreadable = |error| format!("the folder {path} cannot be read: {error}");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&whole).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".contract") {
            files.push(if path == "." { name } else { format!("{}/{name}", path.trim_end_matches('/')) });
        }
    }
    files.sort();
    if files.is_empty() { Err(format!("the folder {path} has no .contract files")) } else { Ok(files) }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Creates a temporary folder with these files.
    fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("contracts-macro-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        for (file, text) in files {
            std::fs::write(folder.join(file), text).expect("a file");
        }
        folder
    }

    const ECHO: &str = "contract Echo {
  in message Say();
  out message Said();
  state READY: one { Say? -> Said! -> READY; }
}
";

    #[test]
    fn all_contracts_of_a_folder_become_modules() {
        let root = folder("good", &[("echo.contract", ECHO), ("notes.txt", "not a contract")]);
        let code = generate(&root, &[".".into()]).expect("the contract is right").to_string();
        assert!(code.contains("pub mod echo {"));
        assert!(code.contains("include_bytes !"), "cargo must see the file");
        std::fs::remove_dir_all(root).expect("the folder goes");
    }

    #[test]
    fn errors_say_which_file_and_line() {
        let wrong = ECHO.replace("Said! ->", "Sayd! ->");
        let root = folder("wrong", &[("echo.contract", &wrong)]);
        let message = generate(&root, &["echo.contract".into()]).expect_err("the contract is wrong");
        assert!(message.contains("error[C021]") && message.contains("echo.contract:4:"), "{message}");
        assert!(!message.contains('\u{1b}'), "no colours in an error of the build: {message:?}");
        let missing = generate(&root, &["other.contract".into()]).expect_err("there is no such file");
        assert!(missing.contains("other.contract"), "{missing}");
        std::fs::remove_dir_all(root).expect("the folder goes");
        let root = folder("empty", &[]);
        assert!(generate(&root, &[".".into()]).is_err());
        std::fs::remove_dir_all(root).expect("the folder goes");
    }
}
