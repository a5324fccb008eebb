//! Access control lists at the prompt: `acl`, `setacl`, and their effects on other programs.

use end_to_end::Machine;

/// The list of most tests: everyone but one program.
const SET: &str = "setacl /service/dns 'deny read,connect ..stat.singularity' 'allow all **'";

fn lines(commands: &str) -> Vec<String> {
    Machine::new().run(commands).succeeded().lines().map(String::from).collect()
}

#[test]
fn a_list_is_set_shown_changed_and_taken_away() {
    let list = |rest: &str| lines(&format!("{SET}; {rest}acl /service/dns"));
    let own = "/service/dns: its own list";
    assert_eq!(list(""), [own, "   1  deny read,connect ..stat.singularity", "   2  allow all **"]);
    let added = list("setacl /service/dns -a 'deny write **'; ");
    assert_eq!(added[1..], ["   1  deny write **", "   2  deny read,connect ..stat.singularity", "   3  allow all **"]);
    assert_eq!(list("setacl /service/dns -r 1; "), [own, "   1  allow all **"]);
    let none = "/service/dns: no list; only the system rules apply";
    assert_eq!(list("setacl /service/dns --none; "), [none]);
    let inherited = lines("setacl /service 'allow all **'; acl /service/dns; acl -e /service/dns");
    assert_eq!(inherited, ["/service/dns: the list of /service", "   1  allow all **", "allow all **"]);
}

#[test]
fn a_list_keeps_one_program_away_and_the_refusal_is_written_down() {
    let run = Machine::new().run(&format!("{SET}; stat /service/dns; ls /service; cat /status/audit"));
    run.orderly();
    assert!(run.errors.contains("stat: /service/dns: this program may not"), "{run}");
    let text = run.text();
    assert!(text.contains("dns"), "{run}");
    let refusal = "directory: shell.singularity + stat.singularity refused read on /service/dns (entry 1 of the list";
    assert!(text.contains(refusal), "{run}");
}

#[test]
fn what_a_list_gives_somebody_is_told_with_what_decided() {
    let told = lines(&format!("{SET}; acl /service/dns --who 'shell.singularity + stat.singularity'"));
    let given = "traverse,write,register,notify,set-acl,execute,listen,control";
    assert_eq!(told[0], format!("/service/dns: its own list gives shell.singularity + stat.singularity {given}"));
    assert_eq!(told[1..4], ["  not read: entry 1", "  not connect: entry 1", "      traverse: entry 2"]);
}

#[test]
fn what_cannot_be_done_is_told_with_what_can() {
    for (commands, parts) in [
        ("setacl /service/dns 'allow fly **'", &["unknown right `fly`", "traverse, read, write"][..]),
        ("setacl /service/dns 'allow read Stat'", &["unexpected `S`", "lowercase letters"]),
        ("setacl /service/dns 'allow read the shell'", &["malformed ` + `", "one space on each side"]),
        ("setacl /service/dns", &["give entries in quotes"]),
        ("setacl /service/dns -r 1", &["no entry 1", "`acl` shows"]),
        ("setacl /service/dns 'allow read **'", &["would lock", "--force"]),
        ("setacl /service/none 'allow all **'", &["/service/none", "not found"]),
        ("acl /service --who stat", &["`stat` is not a principal", "name.publisher"]),
    ] {
        Machine::new().run(commands).refused(parts);
    }
}

/// Then even the shell cannot open the namespace for its children.
#[test]
fn who_locks_everybody_out_is_locked_out_and_the_system_ends_in_order() {
    let run = Machine::new().run("setacl / --force 'deny all **'; acl /; ls /; echo never");
    run.refused(&["shell", "this program may not"]);
    assert_eq!(run.errors.matches("this program may not").count(), 3, "{run}");
    assert_eq!(run.text(), "", "{run}");
}
