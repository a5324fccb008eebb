//! `sing systems`: lists systems with their paths, defaults and contents. With `--as-built` it reverts the changes of
//! one.
//!
//! Deliberately not here: the description of a system; see [`systems::described`].

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::build_lock;
use crate::failure::{Failure, Outcome};
use crate::install::changes::Changes;
use crate::repository::Repository;
use crate::systems::{self, Catalogue, DEFAULTS};

/// What `sing systems` is asked.
#[derive(Debug, clap::Args)]
pub struct SystemsArguments {
    /// Show all of this system: a manifest, or the name of one in systems/
    #[arg(value_name = "SYSTEM")]
    pub system: Option<PathBuf>,
    /// Take back what was installed, upgraded and uninstalled in it
    #[arg(long, requires = "system")]
    pub as_built: bool,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// A row of the list.
struct Row {
    name: String,
    default: Option<&'static str>,
    manifest: PathBuf,
    /// Image to start, if it is built.
    image: Option<PathBuf>,
    changes: Vec<String>,
    /// Names and versions, or the system's error.
    programs: Outcome<Vec<String>>,
}

/// `sing systems`.
///
/// # Errors
/// There is no such system, or its changes cannot be read or reverted.
pub fn list(repository: &Repository, arguments: &SystemsArguments) -> Outcome<u8> {
    let Some(given) = &arguments.system else {
        let catalogue = Catalogue::read(repository)?;
        let rows: Vec<Row> =
            manifests(repository).iter().map(|path| row(repository, &catalogue, path)).collect::<Outcome<_>>()?;
        match arguments.json {
            true => println!("{:#}", rows.iter().map(|row| row.json(repository)).collect::<Value>()),
            false => print!("{}", table(repository, &rows)),
        }
        return Ok(0);
    };
    if systems::is_image(given) {
        return Err(Failure::new(format!("{} is a system image, not a built system", given.display()))
            .remedy(format!("see `cargo sing verify --system {}`", given.display())));
    }
    let manifest = repository.system_manifest(given)?;
    if arguments.as_built {
        let _lock = build_lock::lock(repository)?;
        let changes = Changes::of_damaged(repository, &manifest);
        changes.remove()?;
        println!("the system {} is unchanged since its build", given.display());
        return Ok(0);
    }
    let row = row(repository, &Catalogue::read(repository)?, &manifest)?;
    match arguments.json {
        true => println!("{:#}", row.json(repository)),
        false => print!("{}", row.whole(repository)),
    }
    Ok(0)
}

/// Manifests of all systems: those of the repository, and other systems with changes.
fn manifests(repository: &Repository) -> Vec<PathBuf> {
    let named = repository.system_names().into_iter().filter_map(|name| repository.system_manifest(name.as_ref()).ok());
    let mut all: Vec<PathBuf> = named.collect();
    let is_listed = |path: &PathBuf| all.iter().any(|known| known.canonicalize().ok() == path.canonicalize().ok());
    let others: Vec<PathBuf> = Changes::manifests(repository).into_iter().filter(|path| !is_listed(path)).collect();
    all.extend(others);
    all
}

fn row(repository: &Repository, catalogue: &Catalogue, manifest: &Path) -> Outcome<Row> {
    let changes = Changes::of(repository, manifest)?;
    let outputs = repository.system_outputs(manifest);
    let built = repository.output(&format!("systems/{outputs}.system"));
    let image = if changes.is_empty() { built } else { changes.path().to_path_buf() };
    let programs = systems::described(repository, catalogue, manifest).map(|installed| {
        let mut programs: Vec<String> = installed
            .programs
            .iter()
            .map(|program| format!("{} {}", program.manifest.name, program.manifest.version))
            .collect();
        programs.sort();
        programs
    });
    Ok(Row {
        default: DEFAULTS.iter().find(|(name, _)| *name == outputs).map(|(_, of)| *of),
        name: outputs,
        manifest: manifest.to_path_buf(),
        image: image.is_file().then_some(image),
        changes: changes.all().iter().map(ToString::to_string).collect(),
        programs,
    })
}

/// One line for each system, and one more for each change.
fn table(repository: &Repository, rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or_default().max(6);
    let mut lines = vec![format!("{:width$}  PROGRAMS  {:22}  MANIFEST", "SYSTEM", "DEFAULT")];
    for row in rows {
        let count = row.programs.as_ref().map_or("errors".to_string(), |programs| programs.len().to_string());
        let manifest = repository.shown(&row.manifest);
        lines.push(format!("{:width$}  {count:>8}  {:22}  {manifest}", row.name, row.default.unwrap_or_default()));
        lines.extend(row.changes.iter().map(|change| format!("{:width$}  {:8}  {change}", "", "")));
    }
    lines.push("\n`cargo sing systems NAME` shows the location and contents of a system.".into());
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

impl Row {
    /// Formats the details of one system.
    fn whole(&self, repository: &Repository) -> String {
        let default = self.default.map_or(String::new(), |of| format!(", the default {of}"));
        let image = match &self.image {
            Some(path) => repository.shown(path).to_string(),
            None => "not built yet; built on demand".into(),
        };
        let mut lines = vec![
            format!("{:<10}{}{default}", "system", self.name),
            format!("{:<10}{}", "manifest", repository.shown(&self.manifest)),
            format!("{:<10}{image}", "image"),
        ];
        let of_changes =
            if self.changes.is_empty() { vec!["none: unchanged since its build".into()] } else { self.changes.clone() };
        lines.extend(column("changes", &of_changes));
        match &self.programs {
            Ok(programs) => lines.extend(column("programs", programs)),
            Err(failure) => lines.push(format!("{:<10}{failure}", "errors")),
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn json(&self, repository: &Repository) -> Value {
        json!({
            "name": self.name,
            "default": self.default,
            "manifest": repository.shown(&self.manifest).to_string(),
            "image": self.image,
            "changes": self.changes,
            "programs": self.programs.as_ref().ok(),
            "error": self.programs.as_ref().err().map(ToString::to_string),
        })
    }
}

fn column(word: &str, texts: &[String]) -> Vec<String> {
    let words = std::iter::once(word).chain(std::iter::repeat(""));
    words.zip(texts).map(|(word, text)| format!("{word:<10}{text}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_is_listed_with_what_it_is_the_default_of() {
        let repository = Repository::find().expect("tests run inside the repository");
        let catalogue = Catalogue::read(&repository).expect("the manifests are right");
        let rows: Vec<Row> =
            manifests(&repository).iter().map(|path| row(&repository, &catalogue, path).expect("a system")).collect();
        for name in repository.system_names() {
            assert!(rows.iter().any(|row| row.name == name), "{name}");
        }
        for (name, of) in DEFAULTS {
            let row = rows.iter().find(|row| row.name == name).expect("a default is a system");
            assert_eq!(row.default, Some(of));
            assert!(row.programs.as_ref().is_ok_and(|programs| programs.iter().any(|one| one.starts_with("shell "))));
        }
        let table = table(&repository, &rows);
        assert!(table.contains("systems/hosted.toml"), "{table}");
    }

    #[test]
    fn what_was_changed_in_a_system_is_shown_beneath_it() {
        let repository = Repository::of_tests(Path::new("/r"));
        let row = Row {
            name: "mine".into(),
            default: None,
            manifest: "/r/systems/mine.toml".into(),
            image: Some("/r/target/sing/installed/mine.system".into()),
            changes: vec!["installed tea 0.1.0".into(), "uninstalled greet".into()],
            programs: Ok(vec!["shell 0.1.0".into(), "tea 0.1.0".into()]),
        };
        let whole = row.whole(&repository);
        for line in [
            "system    mine\n",
            "manifest  systems/mine.toml\n",
            "image     target/sing/installed/mine.system\n",
            "changes   installed tea 0.1.0\n          uninstalled greet\n",
            "programs  shell 0.1.0\n          tea 0.1.0\n",
        ] {
            assert!(whole.contains(line), "{line}:\n{whole}");
        }
        assert!(table(&repository, &[row]).contains("  installed tea 0.1.0\n"));
    }
}
