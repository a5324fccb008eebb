//! Tables and keys of system manifests.

use manifest_model::{Category, Domain};

use super::{Key, Kind, LIST_MAX, Presence, Shape, open, optional, required, shape, table, tables};
use crate::trust::POLICIES;

/// A system manifest.
pub static SYSTEM: Shape = shape(
    "the system manifest",
    "A system of Singularity: its programs, and who may reach what",
    &[
        Key {
            name: "system",
            kind: Kind::Table(&SYSTEM_HEAD),
            presence: Presence::Required,
            meaning: SYSTEM_HEAD.meaning,
        },
        tables("program", &INSTANCE),
        tables("bind", &BIND),
        tables("deny", &DENY),
        tables("domain", &APART),
        table("trust", &TRUST),
    ],
);

static SYSTEM_HEAD: Shape = Shape {
    name: "[system]",
    meaning: "the system as a whole",
    keys: &[
        required("name", Kind::Name, "what the system is called"),
        open(
            "base",
            Kind::Name,
            "none",
            "another system manifest of the same folder, without `.toml`: all its programs, installed programs and rules are part of this system, before its own; so are its `root` and `primary` where this one names none. A base may have a base",
        ),
        open(
            "root",
            Kind::Text,
            "that of the base",
            "the program that the kernel starts and that starts all others; not listed as a `[[program]]`",
        ),
        open(
            "primary",
            Kind::Text,
            "none",
            "the instance whose end is the end of the system; its exit status is the system's",
        ),
        optional("installed", Kind::List(&Kind::Text), "[]", "programs that are there to be started by others"),
    ],
    together: r#""anyOf": [{ "required": ["root"] }, { "required": ["base"] }]"#,
};

static INSTANCE: Shape = shape(
    "[[program]]",
    "an instance that runs",
    &[
        required("name", Kind::Text, "the program"),
        open("instance", Kind::NumberedName, "`name`", "name of the instance, of no other"),
        open(
            "count",
            Kind::Number(1, LIST_MAX as i64),
            "one instance",
            "how many instances there are; each `#` in `instance`, and in the values of `devices`, `provides` and `endpoints`, is the instance's number, from 0",
        ),
        optional(
            "optional",
            Kind::Boolean,
            "false",
            "the system goes without it where a device of it, an instance it requires or the provider of an endpoint is missing when those that it waits for are up: a bus has told of its devices by then",
        ),
        optional(
            "parameters",
            Kind::Map(&Kind::Setting),
            "{}",
            "value by parameter, of its type; a list for a repeated one; `{ root = \"p\" }` passes on what the root program was given for its parameter `p`",
        ),
        optional(
            "devices",
            Kind::Map(&Kind::NumberedName),
            "{}",
            "the machine's name by the program's name of a device; a device has one owner",
        ),
        optional(
            "provides",
            Kind::Map(&Kind::Path),
            "{}",
            "other path by the path of a `[[provide]]`; a path has one provider",
        ),
        optional(
            "endpoints",
            Kind::Map(&Kind::Path),
            "{}",
            "other path by the name of an endpoint that is bound to a path",
        ),
        optional(
            "requires",
            Kind::List(&Kind::Text),
            "[]",
            "instances that start before it, beside those that its endpoints need",
        ),
        optional(
            "after",
            Kind::List(&Kind::Text),
            "[]",
            "instances that start before it where they run at all, and that it can do without: the buses on which its device may be",
        ),
    ],
);

static BIND: Shape = shape(
    "[[bind]]",
    "a rule of who may bind to what; what no rule allows is refused",
    &[
        required(
            "who",
            Kind::PrincipalPattern,
            "over principals: `cat.singularity` is the program started by itself, as services are; `..cat.singularity` also when the shell invokes it",
        ),
        required("path", Kind::PathPattern, "over paths"),
    ],
);

static DENY: Shape = shape(
    "[[deny]]",
    "a promise that whoever matches can never reach a path, by whatever way; a system that breaks it is not built, and a change that would break it is refused",
    &[
        required(
            "who",
            Kind::PrincipalPattern,
            "over principals, as in `[[bind]]`; it stands for each program that it can match, however that was invoked",
        ),
        required("reach", Kind::PathPattern, "over paths"),
    ],
);

static APART: Shape = shape(
    "[[domain]]",
    "a hardware domain: programs that the MMU keeps from the kernel and from all others; the first that takes a program has it, those of a base come last, and the root program is in none",
    &[
        required("name", Kind::Name, "what the domain is called"),
        required(
            "kind",
            Kind::Word(Domain::WORDS),
            "`ring-3`: an address space of its own, without privileges; `ring-0`: the same with the processor's privileges, against mistakes alone; `kernel`: the kernel's own, for programs that are to stay there whatever domains follow",
        ),
        optional(
            "who",
            Kind::List(&Kind::ProgramPattern),
            "[]",
            "its programs: `name.publisher`, with `*` for any part of either; all if the list is empty",
        ),
        optional(
            "categories",
            Kind::List(&Kind::Word(Category::WORDS)),
            "[]",
            "of these, the programs of these categories; all if the list is empty",
        ),
        optional(
            "each",
            Kind::Boolean,
            "false",
            "every process has a domain of its own; otherwise they all share one. Unsigned programs run only where this is `true`",
        ),
    ],
);

static TRUST: Shape = shape(
    "[trust]",
    "whose programs the system takes; what it is based on is asked too",
    &[
        open(
            "policy",
            Kind::Word(POLICIES),
            "that of the base, or `signed-only`",
            "`signed-only`: programs that a root or somebody with its certificate has signed; `allow-publisher`: of those, the publishers of `allow`; `quarantine-unsigned`: unsigned programs may be installed too, and run in hardware domains with `each = true` alone",
        ),
        optional(
            "allow",
            Kind::List(&Kind::Publishers),
            "[]",
            "publishers for the policy `allow-publisher`: names, or `name-*` for all that begin so",
        ),
        optional(
            "revoked",
            Kind::List(&Kind::Revoked),
            "[]",
            "serial numbers of certificates (16 digits) and keys (64) that no longer count; added to those of the base",
        ),
        tables("root", &TRUST_ROOT),
    ],
);

static TRUST_ROOT: Shape = shape(
    "[[trust.root]]",
    "a key that is believed without a certificate, beside the builder's own; added to those of the base",
    &[
        required("key", Kind::PublicKey, "the public key, 64 hexadecimal digits"),
        required(
            "publishers",
            Kind::Publishers,
            "for whom it may sign and certify: a name, `name-*` for all that begin so, or `*`",
        ),
        optional("systems", Kind::Boolean, "false", "it may sign whole systems, and so replace everything"),
        optional(
            "native",
            Kind::Boolean,
            "false",
            "it may publish native code for the software domain, and certify others for that; implied by `systems`",
        ),
    ],
);

/// A parameter value taken from the root program.
pub static FROM_ROOT: Shape = shape(
    "the value",
    "what the root program was given for a parameter of its own",
    &[required("root", Kind::Text, "that parameter's name")],
);
