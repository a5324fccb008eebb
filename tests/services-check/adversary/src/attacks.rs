//! The attacks, and the audit lines that each must leave.

use alloc::format;

use client::namespace::Namespace;
use sip::process::create;
use sip::{Deadline, principal};

use crate::ground::{self, DIARY, LETTER, VAULT};
use crate::{Outcome, check, smuggling};

/// One attack.
pub(crate) struct Attack {
    /// Its name.
    pub(crate) name: &'static str,
    /// The intruder's commands and their targets.
    act: &'static str,
    target: &'static str,
    /// Resources of the intruder.
    given: Given,
    /// Required audit lines, as `PRINCIPAL refused RIGHT on OBJECT`, or the relevant part of it.
    pub(crate) lines: &'static [&'static str],
}

/// Resources of an intruder in addition to the namespace.
#[derive(Clone, Copy)]
enum Given {
    Nothing,
    /// This program's network stack, delegated.
    Delegated,
    /// None, but the number of this process as the target.
    OwnNumber,
    /// No intruder: this program runs it, as an installer that is handed a bad package.
    Here(fn() -> Outcome),
}

/// The attacking program.
const INTRUDER: &str = "intruder";
/// Its endpoints and parameters by index in its manifest.
const NAMESPACE_SLOT: usize = 0;
const TCP_SLOT: usize = 1;
const ATTACK_PARAMETER: usize = 0;
const TARGET_PARAMETER: usize = 1;
/// Timeout of an attack.
const TIMEOUT_MS: u64 = 60_000;

const fn plain(name: &'static str, act: &'static str, target: &'static str, lines: &'static [&'static str]) -> Attack {
    Attack { name, act, target, given: Given::Nothing, lines }
}

const CLOSED: &str = "/check/closed";

/// All attacks.
pub(crate) const ALL: &[Attack] = &[
    plain("a name that it was not given", "reach", CLOSED, &["intruder.singularity refused ", " on /check/closed "]),
    plain("the same by detours", "reach-by-detours", CLOSED, &["intruder.singularity refused ", " on /check/closed "]),
    plain("what is in a folder that it was not given", "look-inside", CLOSED, &[" on /check/closed "]),
    plain("the name of another", "take-a-name", CLOSED, &[" on /check/closed "]),
    plain(
        "a service that it may not stop",
        "control-a-service",
        "ram0",
        &[
            "intruder.singularity refused control on /service/manager/control/ram0 ",
            "intruder.singularity refused control on /service/manager/control ",
        ],
    ),
    plain("a disk below the files", "reach", "/dev/ram0", &[" on /dev/ram0 "]),
    plain("the files of another program, to read", "read-a-file", DIARY, &[" on /fs/vault/own"]),
    plain("the files of another program, to change", "change-a-file", DIARY, &[" on /fs/vault/own"]),
    plain("the list of another program's files", "open-the-list", DIARY, &["refused set-acl on /fs/vault/own"]),
    plain(
        "a volume, to mount it where no list is",
        "move-the-volume",
        VAULT,
        &[
            "intruder.singularity refused register on /fs/vault (entry 1 of the list of /fs)",
            "intruder.singularity refused register on /fs/mine (entry 1 of the list of /fs)",
        ],
    ),
    plain(
        "a volume, to format it",
        "format-the-volume",
        VAULT,
        &["intruder.singularity refused connect on /dev/ram0 (entry 1 of the list of /dev)"],
    ),
    plain(
        "a file with a list in a folder that it may write, to put its own there",
        "replace-a-file",
        LETTER,
        &["intruder.singularity refused write on /fs/vault/open/letter "],
    ),
    plain(
        "the list of a volume's root",
        "shut-the-volume",
        VAULT,
        &[
            "intruder.singularity refused set-acl on /fs/vault (the list of the mount point)",
            "intruder.singularity refused set-acl on /fs/vault (no rule of the directory)",
        ],
    ),
    plain(
        "the port of another program",
        "listen",
        "7301",
        &[
            "intruder.singularity refused listen on 127.0.0.1:7301 (network rule 2)",
            "intruder.singularity refused listen on *:7301 (network rule 2)",
        ],
    ),
    plain(
        "a host that it may not speak to",
        "connect",
        "7302",
        &["intruder.singularity refused connect on 127.0.0.1:7302 (no network rule allows it)"],
    ),
    Attack {
        name: "what was delegated to another",
        act: "use-and-pass-on",
        target: "7301",
        given: Given::Delegated,
        lines: &[
            "adversary-check.singularity + intruder.singularity + intruder.singularity refused listen on 127.0.0.1:7301",
        ],
    },
    plain("a role of its own", "widen-role", "", &["intruder.singularity refused assign-role on "]),
    plain(
        "to be rid of the names of its invokers",
        "shed-invokers",
        "/check/alone",
        &[
            "adversary-check.singularity + intruder.singularity + intruder.singularity refused traverse on /check/alone ",
        ],
    ),
    plain(
        "permissions that its manifest has not got",
        "use-permissions",
        "",
        &["refused diagnostics on ", "refused system-manifest on ", "refused power on "],
    ),
    plain(
        "endpoints and parameters that its manifest has not got",
        "grow-endpoints",
        "",
        &[
            "intruder.singularity refused endpoint on intruder, place 64 ",
            "intruder.singularity refused parameter on intruder, place 64 ",
        ],
    ),
    plain(
        "devices that its manifest has not got",
        "open-devices",
        "",
        &["intruder.singularity refused device on intruder, place 7 "],
    ),
    Attack {
        name: "the end of another process",
        act: "end-another",
        target: "",
        given: Given::OwnNumber,
        lines: &["intruder.singularity refused stop-any on "],
    },
    plain("a program of its own choice", "install", "intruder", &["intruder.singularity refused install on "]),
    Attack {
        name: "a publisher whose name looks like another's",
        act: "",
        target: "",
        given: Given::Here(smuggling::look_alike),
        lines: &["adversary-check.singularity refused install on a package "],
    },
    Attack {
        name: "more than its manifest has, by a newer package of its own",
        act: "",
        target: "",
        given: Given::Here(smuggling::grown),
        lines: &["adversary-check.singularity refused install on a package "],
    },
    plain("a line in the name of another", "write-its-own-line", "", &["intruder.singularity refused audit on "]),
];

/// Sends an intruder; fails if one of its attempts succeeded.
pub(crate) fn send(attack: &Attack, namespace: &mut Namespace) -> Outcome {
    let target = match attack.given {
        Given::Here(attack) => return attack(),
        Given::OwnNumber => format!("{}", sip::process::id()),
        Given::Nothing | Given::Delegated => attack.target.into(),
    };
    let said = |status: sip::Status| format!("an intruder cannot be sent: {}", status.text());
    let view = namespace.open_directory("").map_err(|error| format!("a namespace for an intruder: {error}"))?;
    let view = view.into_endpoint().ok_or("a namespace for an intruder is gone")?;
    let child = create(INTRUDER).map_err(|error| format!("{INTRUDER}: {error}"))?;
    let child = child.invoke().map_err(said)?;
    let child = child.parameter(ATTACK_PARAMETER, attack.act).map_err(said)?;
    let child = child.parameter(TARGET_PARAMETER, &target).map_err(said)?;
    let mut child = child.endpoint(NAMESPACE_SLOT, view).map_err(said)?;
    if let Given::Delegated = attack.given {
        let stack = ground::stack(namespace)?;
        principal::delegate(&stack).map_err(said)?;
        child = child.endpoint(TCP_SLOT, stack).map_err(said)?;
    }
    let child = child.start().map_err(said)?;
    let end = child.wait_until(Deadline::after_ms(TIMEOUT_MS));
    let end = end.map_err(|status| format!("the intruder has not ended: {}", status.text()))?;
    check!(end.is_success(), "it went through: {end}");
    Ok(())
}
