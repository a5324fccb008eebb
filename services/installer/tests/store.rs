//! The store on a medium that loses power at every step: afterwards it has the old or the new state.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use install::Medium;
use installer::index::{Index, Kept};
use installer::store::{Shelf, Store};
use manifest_model::Version;

/// A medium that loses power after some steps. Unsynced files are then half written, unsynced names unchanged.
#[derive(Clone, Default)]
struct Disk {
    /// Synced contents.
    files: BTreeMap<String, Vec<u8>>,
    /// Unsynced writes.
    written: BTreeMap<String, Vec<u8>>,
    /// Unsynced renames and removals.
    names: Vec<(String, Option<String>)>,
}

impl Disk {
    /// The medium after a power loss: of what was unsynced, the first `names` changes of names and half of each file's
    /// bytes arrived.
    fn after_power(&self, names: usize) -> Disk {
        let mut disk = Disk { files: self.files.clone(), ..Disk::default() };
        for (name, bytes) in &self.written {
            disk.files.insert(name.clone(), bytes[..bytes.len() / 2].to_vec());
        }
        for (from, to) in self.names.iter().take(names) {
            let bytes = disk.files.remove(from);
            if let (Some(to), Some(bytes)) = (to, bytes) {
                disk.files.insert(to.clone(), bytes);
            }
        }
        disk
    }

    /// The contents with all unsynced changes.
    fn seen(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = self.files.clone();
        files.extend(self.written.clone());
        for (from, to) in &self.names {
            let bytes = files.remove(from);
            if let (Some(to), Some(bytes)) = (to, bytes) {
                files.insert(to.clone(), bytes);
            }
        }
        files
    }
}

#[derive(Clone)]
struct Shared {
    disk: Rc<RefCell<Disk>>,
    steps_left: Rc<RefCell<usize>>,
}

impl Shared {
    fn new(disk: Disk, steps: usize) -> Shared {
        Shared { disk: Rc::new(RefCell::new(disk)), steps_left: Rc::new(RefCell::new(steps)) }
    }

    fn step(&self, act: impl FnOnce(&mut Disk)) -> Result<(), String> {
        let mut left = self.steps_left.borrow_mut();
        if *left == 0 {
            return Err("power loss".into());
        }
        *left -= 1;
        act(&mut self.disk.borrow_mut());
        Ok(())
    }
}

impl Medium for Shared {
    type Error = String;

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), String> {
        self.step(|disk| {
            disk.written.insert(name.into(), bytes.to_vec());
        })
    }

    fn sync(&mut self, name: &str) -> Result<(), String> {
        self.step(|disk| {
            if let Some(bytes) = disk.written.remove(name) {
                disk.files.insert(name.into(), bytes);
            }
        })
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), String> {
        self.step(|disk| disk.names.push((from.into(), Some(to.into()))))
    }

    fn sync_folder(&mut self) -> Result<(), String> {
        self.step(|disk| {
            let files = disk.seen();
            *disk = Disk { files, ..Disk::default() };
        })
    }

    fn remove(&mut self, name: &str) -> Result<(), String> {
        // A missing file has nothing to sync.
        self.step(|disk| {
            if disk.seen().contains_key(name) {
                disk.names.push((name.into(), None));
            }
        })
    }
}

impl Shelf for Shared {
    fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, String> {
        Ok(self.disk.borrow().seen().get(name).cloned())
    }

    fn names(&mut self) -> Result<Vec<String>, String> {
        Ok(self.disk.borrow().seen().into_keys().collect())
    }
}

const OLD: Version = Version { major: 1, minor: 0, patch: 0 };
const NEW: Version = Version { major: 1, minor: 1, patch: 0 };

fn index_of(disk: Disk) -> (Index, Disk) {
    let store = Store::open(Shared::new(disk.clone(), usize::MAX)).expect("the list can be read");
    (store.index().clone(), disk)
}

/// Runs `act` with a power loss after every step; returns the number of steps.
fn cut_everywhere(begin: &Disk, act: impl Fn(&mut Store<Shared>) -> Result<(), String>) -> usize {
    let (old, _) = index_of(begin.clone());
    let whole = Shared::new(begin.clone(), usize::MAX);
    act(&mut Store::open(whole.clone()).expect("a store")).expect("it can be done");
    let (new, _) = index_of(whole.disk.borrow().after_power(usize::MAX));
    assert_ne!(old, new);
    let mut cuts = 0;
    for steps in 0.. {
        let cut = Shared::new(begin.clone(), steps);
        let outcome = act(&mut Store::open(cut.clone()).expect("a store"));
        let disk = cut.disk.borrow().clone();
        for names in 0..=disk.names.len() {
            cuts += 1;
            let (found, disk) = index_of(disk.after_power(names));
            assert!(found == old || found == new, "after {steps} steps and {names} names: {found:?}");
            if outcome.is_ok() {
                assert_eq!(found, new, "a completed change is durable");
            }
            for kept in &found.kept {
                let bytes = disk.files.get(&kept.file());
                assert_eq!(bytes.map(Vec::as_slice), Some(content(kept).as_bytes()), "after {steps} steps");
            }
        }
        if *cut.steps_left.borrow() > 0 {
            return cuts;
        }
    }
    cuts
}

fn content(kept: &Kept) -> String {
    format!("the package of {} {}", kept.name, kept.version)
}

fn kept(name: &str, version: Version) -> Kept {
    Kept { name: name.into(), version, more: false }
}

fn install(store: &mut Store<Shared>, name: &str, version: Version) -> Result<(), String> {
    let kept = kept(name, version);
    store.stage(&kept, content(&kept).as_bytes(), b"")?;
    store.commit(kept)
}

fn names(shared: &Shared) -> Vec<String> {
    shared.disk.borrow().seen().into_keys().collect()
}

fn with_one() -> Disk {
    let shared = Shared::new(Disk::default(), usize::MAX);
    install(&mut Store::open(shared.clone()).expect("a store"), "greeter", OLD).expect("it can be kept");
    let disk = shared.disk.borrow().clone();
    disk.after_power(usize::MAX)
}

#[test]
fn a_power_loss_leaves_the_old_or_the_new_index_with_its_files() {
    assert!(cut_everywhere(&Disk::default(), |store| install(store, "greeter", OLD)) > 8);
    assert!(cut_everywhere(&with_one(), |store| install(store, "greeter", NEW)) > 8);
    assert!(cut_everywhere(&with_one(), |store| install(store, "other", OLD)) > 8);
    assert!(cut_everywhere(&with_one(), |store| store.unlist("greeter", false)) > 4);
    assert!(cut_everywhere(&with_one(), |store| store.unlist("cat", true)) > 4);
}

#[test]
fn files_not_in_the_index_are_removed() {
    let shared = Shared::new(with_one(), usize::MAX);
    let mut store = Store::open(shared.clone()).expect("a store");
    install(&mut store, "greeter", NEW).expect("it can be kept");
    assert_eq!(names(&shared), ["greeter-1.1.0.package", "installed"]);
    store.unlist("greeter", false).expect("it can be dropped");
    assert_eq!(names(&shared), ["installed"]);
}

/// The image of a WebAssembly program lies beside its package, and goes with it.
#[test]
fn a_compiled_image_comes_and_goes_with_its_package() {
    let shared = Shared::new(Disk::default(), usize::MAX);
    let mut store = Store::open(shared.clone()).expect("a store");
    install(&mut store, "plain", OLD).expect("it can be kept");
    let mut store = Store::open(shared.clone()).expect("a store with an index");
    for version in [OLD, NEW] {
        let module = kept("module", version);
        store.stage(&module, b"package", b"image").expect("it can be staged");
        store.commit(module.clone()).expect("it can be kept");
        assert_eq!(store.image(&module).as_deref(), Some(&b"image"[..]));
    }
    assert_eq!(names(&shared), ["installed", "module-1.1.0.image", "module-1.1.0.package", "plain-1.0.0.package"]);
    assert_eq!(store.image(&kept("plain", OLD)), None);
    store.keep_image(&kept("module", NEW), b"again").expect("it can be written");
    assert_eq!(store.image(&kept("module", NEW)).as_deref(), Some(&b"again"[..]));
    let other = kept("other", OLD);
    store.stage(&other, b"package", b"image").expect("it can be staged");
    store.discard(&other);
    store.unlist("module", false).expect("it can be dropped");
    assert_eq!(names(&shared), ["installed", "plain-1.0.0.package"]);
}

#[test]
fn discard_removes_only_a_staged_package() {
    let shared = Shared::new(with_one(), usize::MAX);
    let mut store = Store::open(shared.clone()).expect("a store");
    store.stage(&kept("greeter", NEW), b"refused", b"").expect("it can be staged");
    store.discard(&kept("greeter", NEW));
    // A file in the index stays.
    store.discard(&kept("greeter", OLD));
    assert_eq!(names(&shared), ["greeter-1.0.0.package", "installed"]);
}

/// A user may delete a damaged index; the packages it named are then all that is left to reinstall from.
#[test]
fn without_an_index_no_package_is_removed() {
    let mut disk = with_one();
    disk.files.remove("installed");
    let shared = Shared::new(disk, usize::MAX);
    install(&mut Store::open(shared.clone()).expect("a store"), "other", OLD).expect("it can be kept");
    assert_eq!(names(&shared), ["greeter-1.0.0.package", "installed", "other-1.0.0.package"]);
}

/// An index that could not be parsed again is not written.
#[test]
fn a_full_index_refuses_programs_and_stays_readable() {
    let shared = Shared::new(Disk::default(), usize::MAX);
    for number in 0..512 {
        let mut store = Store::open(shared.clone()).expect("a store");
        install(&mut store, &format!("p{number}"), OLD).unwrap_or_else(|why| panic!("{number}: {why}"));
    }
    let before = names(&shared);
    let mut store = Store::open(shared.clone()).expect("a full store can be read");
    let why = install(&mut store, "one-more", OLD).expect_err("it is full");
    assert!(why.contains("full with 512 programs"), "{why}");
    store.unlist("cat", true).expect_err("a removal takes a line, too");
    assert_eq!(names(&shared), before);
    install(&mut store, "p7", NEW).expect("a newer version needs no more room");
    store.unlist("p8", false).expect("it can be dropped");
    install(&mut store, "one-more", OLD).expect("there is room");
    assert_eq!(Store::open(shared).expect("it can be read").index().kept.len(), 512);
}

#[test]
fn foreign_files_stay() {
    let mut disk = with_one();
    disk.files.insert("notes.txt".into(), b"mine".to_vec());
    let shared = Shared::new(disk, usize::MAX);
    install(&mut Store::open(shared.clone()).expect("a store"), "greeter", NEW).expect("it can be kept");
    assert!(shared.disk.borrow().seen().contains_key("notes.txt"));
}

#[test]
fn a_malformed_index_is_refused_and_left_alone() {
    for (text, words) in [
        ("", "first line"),
        ("installed 2\nend 0\n", "first line"),
        ("installed 1\n", "the end line is missing"),
        ("installed 1\nprogram greeter 1.0.0\n", "the end line is missing"),
        ("installed 1\nprogram greeter 1.0.0\nend 2\n", "unexpected line"),
        ("installed 1\nprogram greeter 1.0\nend 1\n", "has no version"),
        ("installed 1\nprogram ../x 1.0.0\nend 1\n", "unexpected line"),
        ("installed 1\nprogram a 1.0.0\nprogram a 1.0.0\nend 2\n", "unexpected line"),
        ("installed 1\nwithout a\nwithout a\nend 2\n", "unexpected line"),
        ("installed 1\nwithout a more\nend 1\n", "unexpected line"),
        ("installed 1\nprogram a 1.0.0 less\nend 1\n", "unexpected line"),
        ("installed 1\nprogram a 1.0.0 more more\nend 1\n", "unexpected line"),
        ("installed 1\nend 0\nprogram a 1.0.0\n", "data follows the end line"),
    ] {
        let mut disk = Disk::default();
        disk.files.insert("installed".into(), text.into());
        let shared = Shared::new(disk, usize::MAX);
        let why = Store::open(shared.clone()).err().unwrap_or_default();
        assert!(why.contains(words) && why.contains("damaged"), "`{text}`: {why}");
        assert_eq!(shared.disk.borrow().seen()["installed"], text.as_bytes());
    }
}

#[test]
fn an_index_round_trips() {
    let index = Index::default().with(kept("a", OLD)).with(kept("b", NEW));
    let index = index.without("c", true).with(kept("a", NEW)).with(Kept { more: true, ..kept("d", OLD) });
    assert_eq!(Index::parse(index.text().as_bytes()), Ok(index.clone()));
    assert_eq!(index.program("a").map(|kept| kept.version), Some(NEW));
    assert_eq!(index.gone, ["c"]);
}

/// Uninstalling a program that replaced one of the system image does not restore the image's.
#[test]
fn removal_of_an_image_program_is_recorded_beside_its_replacement() {
    let index = Index::default().without("c", true).with(kept("c", OLD));
    assert_eq!((index.gone.len(), index.kept.len()), (1, 1));
    assert_eq!(Index::parse(index.text().as_bytes()), Ok(index.clone()));
    let index = index.without("c", true);
    assert_eq!((index.gone, index.kept), (vec!["c".to_string()], Vec::new()));
}

#[test]
fn approvals_carry_over_to_newer_versions() {
    let index = Index::default().with(Kept { more: true, ..kept("a", OLD) }).with(kept("a", NEW));
    assert_eq!(index.kept, [Kept { more: true, ..kept("a", NEW) }]);
    // A later program of this name starts without approvals.
    assert_eq!(index.without("a", false).with(kept("a", NEW)).kept, [kept("a", NEW)]);
}
