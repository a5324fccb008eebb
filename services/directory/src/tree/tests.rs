use alloc::format;

use super::*;

type Names = Tree<&'static str>;

fn provider_at(tree: &Names, path: &str) -> Result<(&'static str, String), NameError> {
    match tree.resolve(Names::ROOT, path)? {
        Resolved::Provider { provider, path, rest, .. } => Ok((provider, path[rest..].into())),
        Resolved::Folder(_) => Ok(("folder", String::new())),
    }
}

fn sample() -> Names {
    let mut tree = Names::new();
    tree.register(Names::ROOT, "/dev/disk0", ProviderScope::Name, "manager", "disk").unwrap();
    tree.register(Names::ROOT, "/fs/disk0", ProviderScope::Subtree, "manager", "ext2").unwrap();
    tree
}

#[test]
fn the_rest_of_a_path_is_left_to_the_provider() {
    let tree = sample();
    assert_eq!(provider_at(&tree, "/fs/disk0/a//b.txt"), Ok(("ext2", "a//b.txt".into())));
    assert_eq!(provider_at(&tree, "fs//disk0/"), Ok(("ext2", String::new())));
    assert_eq!(provider_at(&tree, "/dev/disk0"), Ok(("disk", String::new())));
    assert_eq!(provider_at(&tree, "/dev/disk0/x"), Err(NameError::NotADirectory));
    assert_eq!(provider_at(&tree, "/dev/disk1"), Err(NameError::NotFound));
    assert_eq!(provider_at(&tree, "/"), Ok(("folder", String::new())));
    assert_eq!(provider_at(&tree, "/fs/../dev"), Err(NameError::BadPath));
}

#[test]
fn links_are_followed_up_to_a_limit() {
    let mut tree = sample();
    tree.link(Names::ROOT, "/data", "/fs/disk0/data").unwrap();
    assert_eq!(provider_at(&tree, "/data/x"), Ok(("ext2", "data/x".into())));
    tree.link(Names::ROOT, "/dev/first", "disk0").unwrap();
    assert_eq!(provider_at(&tree, "/dev/first"), Ok(("disk", String::new())));
    tree.link(Names::ROOT, "/a", "/b").unwrap();
    tree.link(Names::ROOT, "/b", "/a").unwrap();
    assert_eq!(provider_at(&tree, "/a"), Err(NameError::TooManyLinks));
    let link = tree.look(Names::ROOT, "/a").unwrap().node;
    assert_eq!(tree.link_target(link), Ok("/b"));
    assert_eq!(tree.look(Names::ROOT, "/a").unwrap().kind, NodeKind::Link);
}

#[test]
fn a_link_made_below_a_folder_cannot_leave_it() {
    let mut tree = sample();
    let part = tree.create_folder(Names::ROOT, "/part").unwrap();
    tree.register(part, "inner", ProviderScope::Name, "x", "inner").unwrap();
    tree.link(part, "/link", "/inner").unwrap();
    assert_eq!(provider_at(&tree, "/part/link"), Ok(("inner", String::new())));
}

#[test]
fn only_the_registrar_registers_again() {
    let mut tree = sample();
    let again = tree.register(Names::ROOT, "/dev/disk0", ProviderScope::Name, "manager", "disk again");
    assert_eq!(again.unwrap().1, Some("disk"));
    assert_eq!(provider_at(&tree, "/dev/disk0"), Ok(("disk again", String::new())));
    let other = tree.register(Names::ROOT, "/dev/disk0", ProviderScope::Name, "someone", "evil");
    assert_eq!(other.unwrap_err(), NameError::AlreadyExists);
    assert_eq!(tree.create_folder(Names::ROOT, "/dev").unwrap_err(), NameError::AlreadyExists);
}

#[test]
fn a_removed_node_resolves_to_nothing() {
    let mut tree = sample();
    let folder = tree.create_folder(Names::ROOT, "/tmp").unwrap();
    assert_eq!(tree.remove(Names::ROOT, "/dev"), Err(NameError::IsADirectory));
    tree.remove(Names::ROOT, "/tmp").unwrap();
    let reused = tree.create_folder(Names::ROOT, "/other").unwrap();
    assert_ne!(folder, reused);
    assert!(matches!(tree.resolve(folder, ""), Err(NameError::NotFound)));
    assert_eq!(tree.path_of(reused), "/other");
    assert_eq!(tree.remove(Names::ROOT, "/tmp"), Err(NameError::NotFound));
}

#[test]
fn a_folder_is_listed_in_order_and_from_a_name_on() {
    let mut tree = sample();
    tree.link(Names::ROOT, "/alias", "/dev").unwrap();
    let names = |after| tree.list_after(Names::ROOT, after).unwrap().map(|found| found.name).collect::<Vec<_>>();
    assert_eq!(names(None), ["alias", "dev", "fs"]);
    assert_eq!(names(Some("alias")), ["dev", "fs"]);
    assert_eq!(names(Some("fs")), Vec::<String>::new());
}

fn list(text: &str) -> Rc<List> {
    let system = manifest_model::SystemManifest {
        name: "test".into(),
        root: "root".into(),
        primary: None,
        instances: Vec::new(),
        installed: Vec::new(),
        binds: Vec::new(),
        denies: Vec::new(),
        domains: Vec::new(),
        trust: Default::default(),
    };
    let access = crate::access::Access::new(crate::rules::Rules::new(&system, &[], &[]).unwrap());
    access.list(principal::Acl::parse(text).unwrap())
}

#[test]
fn the_nearest_ancestors_list_governs() {
    let mut tree = sample();
    let node = |tree: &Names, path: &str| tree.look(Names::ROOT, path).unwrap().node;
    let (dev, disk) = (node(&tree, "/dev"), node(&tree, "/dev/disk0"));
    assert!(!tree.has_lists() && tree.list_of(disk).is_none());
    tree.set_list(Names::ROOT, Some(list("allow read **"))).unwrap();
    assert_eq!(tree.list_of(disk).unwrap().0, Names::ROOT);
    tree.set_list(dev, Some(list("deny read **"))).unwrap();
    let (from, found) = tree.list_of(disk).unwrap();
    assert_eq!((from, found.text().as_str()), (dev, "deny read **\n"));
    assert_eq!(tree.list_of(node(&tree, "/fs")).unwrap().0, Names::ROOT);
    assert!(tree.set_list(dev, None).unwrap().is_some());
    assert_eq!(tree.list_of(disk).unwrap().0, Names::ROOT);
    tree.set_list(Names::ROOT, None).unwrap();
    assert!(!tree.has_lists());
}

#[test]
fn a_list_is_removed_with_its_name_and_an_initial_one_set_on_creation() {
    let mut tree = Names::new().with_initial_lists(Vec::from([("/tmp".into(), list("allow read **"))]));
    assert!(!tree.has_lists());
    for _ in 0..2 {
        let folder = tree.create_folder(Names::ROOT, "/tmp").unwrap();
        assert_eq!(tree.list_of(folder).unwrap().0, folder);
        tree.remove(Names::ROOT, "/tmp").unwrap();
        assert!(!tree.has_lists());
    }
}

#[test]
fn an_exact_path_precedes_patterns_for_initial_lists() {
    let lists = [("/fs/*", "allow traverse **"), ("/fs/ram0", "allow all **"), ("/fs/r*", "deny all **")];
    let mut tree = Names::new().with_initial_lists(lists.map(|(path, text)| (path.into(), list(text))).into());
    let mut text = |path: &str| {
        let node = tree.create_folder(Names::ROOT, path).unwrap();
        tree.list_of(node).map(|(_, list)| list.text())
    };
    assert_eq!(text("/fs/ram0").as_deref(), Some("allow all **\n"));
    assert_eq!(text("/fs/ram1").as_deref(), Some("allow traverse **\n"));
    assert_eq!(text("/fs/disk0/below").as_deref(), Some("allow traverse **\n"));
    assert_eq!(text("/dev"), None);
}

#[test]
fn a_provider_registered_again_has_its_former_list() {
    let mut tree = Names::new().with_initial_lists(Vec::from([("/fs/a".into(), list("allow read **"))]));
    let own = |tree: &Names, node| tree.list_of(node).filter(|(of, _)| *of == node).map(|(_, list)| list.text());
    let mount = |tree: &mut Names, path: &str| {
        tree.register(Names::ROOT, path, ProviderScope::Subtree, "volume-manager.singularity", "fs").unwrap().0
    };
    let node = mount(&mut tree, "/fs/a");
    assert_eq!(own(&tree, node).as_deref(), Some("allow read **\n"));
    tree.set_list(node, Some(list("deny all **"))).unwrap();
    tree.remove(Names::ROOT, "/fs/a").unwrap();
    assert!(!tree.has_lists());
    let other = mount(&mut tree, "/fs/b");
    assert_eq!(own(&tree, other), None);
    let node = mount(&mut tree, "/fs/a");
    assert_eq!(own(&tree, node).as_deref(), Some("deny all **\n"));
    // Clearing the list restores the initial one on the next registration.
    tree.set_list(node, None).unwrap();
    tree.remove(Names::ROOT, "/fs/a").unwrap();
    let node = mount(&mut tree, "/fs/a");
    assert_eq!(own(&tree, node).as_deref(), Some("allow read **\n"));
    // The number of kept lists is bounded: the oldest is dropped.
    for number in 0..=KEPT_LISTS {
        let path = format!("/fs/{number}");
        let node = mount(&mut tree, &path);
        tree.set_list(node, Some(list("deny all **"))).unwrap();
        tree.remove(Names::ROOT, &path).unwrap();
    }
    let (oldest, next) = (mount(&mut tree, "/fs/0"), mount(&mut tree, "/fs/1"));
    assert_eq!((own(&tree, oldest), own(&tree, next).as_deref()), (None, Some("deny all **\n")));
}

#[test]
fn a_missing_name_has_the_list_it_would_be_created_with() {
    let lists = [("/fs", "allow read **"), ("/fs/ram0", "allow all **")];
    let mut tree = Names::new().with_initial_lists(lists.map(|(path, text)| (path.into(), list(text))).into());
    tree.create_folder(Names::ROOT, "/fs").unwrap();
    let before = |tree: &Names, path: &str| {
        let place = tree.place_of(Names::ROOT, path, &mut |_| Ok(())).unwrap();
        tree.list_on_creation(&place).map(|list| list.text())
    };
    assert_eq!(before(&tree, "/fs/ram0").as_deref(), Some("allow all **\n"));
    assert_eq!(before(&tree, "/fs/disk0"), None, "the folder's own list governs");
    let node = tree.register(Names::ROOT, "/fs/ram0", ProviderScope::Subtree, "manager", "fs").unwrap().0;
    assert_eq!(before(&tree, "/fs/ram0"), None, "it has its own");
    tree.set_list(node, Some(list("deny all **"))).unwrap();
    tree.remove(Names::ROOT, "/fs/ram0").unwrap();
    assert_eq!(before(&tree, "/fs/ram0").as_deref(), Some("deny all **\n"));
}

#[test]
fn each_folder_along_the_path_is_checked() {
    let mut tree = sample();
    tree.create_folder(Names::ROOT, "/a/b").unwrap();
    tree.link(Names::ROOT, "/a/b/link", "/fs/disk0/data").unwrap();
    let passed = |path: &str| {
        let mut passed = Vec::new();
        let resolved = tree.resolve_past(Names::ROOT, path, &mut |node| {
            passed.push(tree.path_of(node));
            Ok(())
        });
        resolved.unwrap();
        passed.join(" ")
    };
    assert_eq!(passed("/"), "");
    assert_eq!(passed("/a/b"), "/ /a");
    assert_eq!(passed("/dev/disk0"), "/ /dev");
    assert_eq!(passed("/fs/disk0"), "/ /fs");
    assert_eq!(passed("/fs/disk0/x"), "/ /fs /fs/disk0");
    assert_eq!(passed("/a/b/link"), "/ /a /a/b / /fs /fs/disk0");
    let refused = |path: &str, at: &str| {
        let mut pass = |node| if tree.path_of(node) == at { Err(NameError::NotPermitted) } else { Ok(()) };
        let resolved = tree.resolve_past(Names::ROOT, path, &mut pass).err();
        let looked = tree.look_past(Names::ROOT, path, &mut pass).err();
        let placed = tree.place_of(Names::ROOT, path, &mut pass).err();
        [resolved, looked, placed].map(|error| error == Some(NameError::NotPermitted))
    };
    assert_eq!(refused("/a/b/none", "/a"), [true; 3]);
    assert_eq!(refused("/a/b", "/a"), [true; 3]);
    assert_eq!(refused("/a/b", "/a/b"), [false; 3]);
    assert_eq!(refused("/a/b/link", "/fs"), [true, false, false]);
}

#[test]
fn a_place_has_its_nearest_existing_ancestor() {
    let tree = sample();
    let place = |path: &str| tree.place_of(Names::ROOT, path, &mut |_| Ok(())).unwrap();
    let node = |path: &str| tree.look(Names::ROOT, path).unwrap().node;
    assert_eq!(place("dev/disk0"), Place { path: "/dev/disk0".into(), nearest: node("/dev/disk0") });
    assert_eq!(place("/dev/x"), Place { path: "/dev/x".into(), nearest: node("/dev") });
    assert_eq!(place("/new/a/x"), Place { path: "/new/a/x".into(), nearest: Names::ROOT });
}
