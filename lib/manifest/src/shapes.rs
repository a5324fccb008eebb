//! Tables and keys of manifests, and the kind of each key's value.
//!
//! The reader takes the known keys and the ranges of numbers from here, [`crate::schema`] generates the schemas for
//! editors, and the documentation's tables are compared with it. Key types: [`Shape`] (a table), [`Key`], [`Kind`] (a
//! value). Deliberately not here: constraints between values, which the reader and the rules of `install` check.

use abi::ABI_VERSION;
use manifest_model::{Bounds, Category, ContractSide, Domain, ParameterKind, Permission, Quota, Restart, Side};

use assertions::ASSERT;
pub use system::{FROM_ROOT, SYSTEM};

mod assertions;
mod system;

/// A table of a manifest.
#[derive(Debug)]
pub struct Shape {
    /// Display name: `[program]`, `[[contract]]`.
    pub name: &'static str,
    /// Its meaning, a phrase.
    pub meaning: &'static str,
    /// Its keys, in the order of the documentation.
    pub keys: &'static [Key],
    /// Schema constraints on several keys together: the members of a JSON object, or empty.
    pub together: &'static str,
}

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// Name in the source.
    pub name: &'static str,
    /// Kind of its value.
    pub kind: Kind,
    /// Whether it is required, and the default otherwise.
    pub presence: Presence,
    /// Its purpose, a phrase.
    pub meaning: &'static str,
}

/// Whether a key is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Required.
    Required,
    /// Optional; the default is this value, in TOML and JSON alike.
    Default(&'static str),
    /// Optional; the default is described in words.
    Otherwise(&'static str),
}

/// Kinds of values.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text of any content.
    Text,
    /// A non-empty text.
    SomeText,
    /// One line of text.
    Line,
    /// A name of a program, publisher, instance, endpoint, parameter or device.
    Name,
    /// As `Name`, in which `#` may stand for a number.
    NumberedName,
    /// A name of a program, except the system's.
    ProgramName,
    /// `major.minor.patch`.
    Version,
    /// A minimum version, `>=1.2`.
    AtLeast,
    /// An absolute path.
    Path,
    /// A keyword for the source of an endpoint, or a path.
    Source,
    /// A pattern of paths.
    PathPattern,
    /// A pattern of principals.
    PrincipalPattern,
    /// A pattern of programs with their publishers.
    ProgramPattern,
    /// A pattern of publishers.
    Publishers,
    /// A public key, 64 hexadecimal digits.
    PublicKey,
    /// A serial number, 16 hexadecimal digits, or a key.
    Revoked,
    /// A path of a Rust module.
    Module,
    /// An option of a command, `-l` or `--long`.
    Flag,
    /// Consecutive addresses, `first+count`.
    Range,
    /// An integer in a range, both ends included.
    Number(i64, i64),
    /// `true` or `false`.
    Boolean,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A value of any parameter type.
    Value,
    /// Setting of a parameter in a system manifest: a value, several, or a parameter of the root program.
    Setting,
    /// A list.
    List(&'static Kind),
    /// A table with user-defined keys.
    Map(&'static Kind),
    /// A table.
    Table(&'static Shape),
    /// A list of tables.
    Tables(&'static Shape),
}

/// Maximum entries of a list, and maximum tables of one kind.
pub const LIST_MAX: usize = 256;

impl Shape {
    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// The names of all keys.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name)
    }

    /// Returns the table and all nested ones, itself first.
    pub fn tables(&'static self) -> Vec<&'static Shape> {
        let inner = self.keys.iter().filter_map(|key| match key.kind {
            Kind::Table(shape) | Kind::Tables(shape) => Some(shape),
            _ => None,
        });
        let inner: Vec<_> = inner.flat_map(Shape::tables).collect();
        [vec![self], inner].concat()
    }
}

const fn required(name: &'static str, kind: Kind, meaning: &'static str) -> Key {
    Key { name, kind, presence: Presence::Required, meaning }
}

const fn optional(name: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key { name, kind, presence: Presence::Default(default), meaning }
}

/// An optional key; `otherwise` describes the default, `none` if there is nothing to describe.
const fn open(name: &'static str, kind: Kind, otherwise: &'static str, meaning: &'static str) -> Key {
    Key { name, kind, presence: Presence::Otherwise(otherwise), meaning }
}

const fn table(name: &'static str, shape: &'static Shape) -> Key {
    Key { name, kind: Kind::Table(shape), presence: Presence::Otherwise("none"), meaning: shape.meaning }
}

const fn tables(name: &'static str, shape: &'static Shape) -> Key {
    Key { name, kind: Kind::Tables(shape), presence: Presence::Otherwise("none"), meaning: shape.meaning }
}

const fn shape(name: &'static str, meaning: &'static str, keys: &'static [Key]) -> Shape {
    Shape { name, meaning, keys, together: "" }
}

/// A program's manifest.
pub static PROGRAM: Shape = shape(
    "the manifest",
    "A program of Singularity: what it is, what it is given, what it may use up",
    &[
        Key {
            name: "program",
            kind: Kind::Table(&PROGRAM_HEAD),
            presence: Presence::Required,
            meaning: PROGRAM_HEAD.meaning,
        },
        table("code", &CODE),
        tables("contract", &CONTRACT),
        tables("endpoint", &ENDPOINT),
        tables("parameter", &PARAMETER),
        tables("provide", &PROVIDE),
        tables("device", &DEVICE),
        tables("requires", &REQUIRES),
        table("quota", &QUOTA),
        table("supervision", &SUPERVISION),
        table("permissions", &PERMISSIONS),
        table("domain", &DOMAIN),
        table("assert", &ASSERT),
    ],
);

static PROGRAM_HEAD: Shape = shape(
    "[program]",
    "what the program is",
    &[
        required(
            "name",
            Kind::ProgramName,
            "what the program is called; the first half of its principal `name.publisher`",
        ),
        optional("publisher", Kind::Name, "\"singularity\"", "who made it"),
        required("version", Kind::Version, "`major.minor.patch`, without leading zeros"),
        required(
            "abi",
            Kind::Number(ABI_VERSION as i64, ABI_VERSION as i64),
            "the ABI version it is built for; the kernel has 1",
        ),
        required(
            "category",
            Kind::Word(Category::WORDS),
            "`console` (a person starts it), `driver` (owns a device), `service` (serves others), `web-application` (a plug-in of a web server), `test`, `example`",
        ),
        required("summary", Kind::Line, "one line for `help`"),
    ],
);

static CODE: Shape = Shape {
    name: "[code]",
    meaning: "what the program runs: a crate, a WebAssembly module or a script",
    keys: &[
        open(
            "crate",
            Kind::Text,
            "`\".\"` where there is no `[code]`",
            "folder of the library crate, from the manifest",
        ),
        open(
            "entry",
            Kind::Module,
            "the crate's root",
            "Rust path of the module with `main`, from the crate's root, where a crate holds several programs: `wc`",
        ),
        open("script", Kind::SomeText, "none", "commands that the shell runs, in place of a crate"),
        optional(
            "unsafe",
            Kind::Boolean,
            "false",
            "the crate holds unsafe code; each process of the program has a hardware domain of its own, or there is none",
        ),
        open(
            "c",
            Kind::List(&Kind::Text),
            "none",
            "files of C code, and folders of them, from the manifest; they make the program unsafe",
        ),
        open(
            "c-headers",
            Kind::List(&Kind::Text),
            "none",
            "folders of C code in crates that the feature `c-sources` adds, which files of `c` include: `libz-sys:src/zlib`",
        ),
        open(
            "wasm",
            Kind::SomeText,
            "none",
            "a WebAssembly module in the binary format, from the manifest, in place of a crate; the template's contracts and endpoints come before its own",
        ),
        open(
            "template",
            Kind::Text,
            "`\"wasi\"`",
            "the template that plays the host of the module: a folder of `templates/`",
        ),
        open(
            "bounds",
            Kind::Word(Bounds::WORDS),
            "`\"guarded\"`",
            "how the module's code keeps to its memory: `guarded`, by reserved addresses behind it, or `checked`, by a comparison at each access",
        ),
        optional("wasm-template", Kind::Boolean, "false", "the crate is a template, to which modules are added"),
        optional(
            "unsafe-for-tests",
            Kind::Boolean,
            "false",
            "the crate of a test holds unsafe code to attack the system with; built only where that is asked for",
        ),
    ],
    together: r#""oneOf": [{ "required": ["crate"], "not": { "anyOf": [{ "required": ["template"] }, { "required": ["bounds"] }] } }, { "required": ["script"], "not": { "anyOf": [{ "required": ["entry"] }, { "required": ["unsafe"] }, { "required": ["c"] }, { "required": ["c-headers"] }, { "required": ["template"] }, { "required": ["bounds"] }] } }, { "required": ["wasm"], "not": { "anyOf": [{ "required": ["entry"] }, { "required": ["unsafe"] }, { "required": ["c"] }, { "required": ["c-headers"] }] } }]"#,
};

static CONTRACT: Shape = shape(
    "[[contract]]",
    "a contract that the image uses",
    &[
        required(
            "name",
            Kind::Text,
            "name in a `.contract` file of the system or of a crate that the program depends on",
        ),
        required(
            "use",
            Kind::Word(ContractSide::WORDS),
            "which ends the program handles: `import`, `export` or `both`",
        ),
        open(
            "module",
            Kind::Module,
            "`contracts::<snake_case>`",
            "Rust path of the generated module: `ping_contract::ping`, or `crate::...`",
        ),
        open(
            "waits-for",
            Kind::List(&Kind::Text),
            "all imported contracts",
            "of an exported contract: the imported contracts for whose answers its answers wait, `\"NAME\"`, `\"NAME of others\"` or `\"NAME of the namespace\"` ([deadlock.md](deadlock.md))",
        ),
    ],
);

static ENDPOINT: Shape = shape(
    "[[endpoint]]",
    "an endpoint that the program is given at its start",
    &[
        required("name", Kind::Name, "name of the field; `-` becomes `_`"),
        required("contract", Kind::Text, "one of the `[[contract]]`s"),
        required("side", Kind::Word(Side::WORDS), "`imp` or `exp`: the end that the program gets"),
        required("state", Kind::Text, "the state it is in; one in which something can still be said"),
        required(
            "from",
            Kind::Source,
            "`parent` (who starts the program keeps the other end), `stdin`, `stdout`, or a path of the namespace that it is bound to",
        ),
        optional("optional", Kind::Boolean, "false", "the program starts without it; the field is an `Option`"),
    ],
);

static PARAMETER: Shape = Shape {
    name: "[[parameter]]",
    meaning: "what a person or the system can set",
    keys: &[
        required("name", Kind::Name, "name of the field; none of an endpoint's"),
        required(
            "type",
            Kind::Word(ParameterKind::WORDS),
            "`string` (`String`), `integer` (`i64`), `boolean` (`bool`), `duration-ms` (`Duration`; written `250`, `250ms`, `2s` or `5m`)",
        ),
        open(
            "default",
            Kind::Value,
            "none",
            "of the type: the value if none is given. Without one the field is an `Option`; a boolean is then `false`",
        ),
        optional("required", Kind::Boolean, "false", "the program does not start without it; has no default"),
        open(
            "position",
            Kind::Number(0, u16::MAX as i64),
            "none",
            "place among the words of a command: 0, 1, 2, ... without gaps, required ones first",
        ),
        optional(
            "repeated",
            Kind::Boolean,
            "false",
            "takes any number of values (`Vec`); the last position takes all words that follow",
        ),
        open("flag", Kind::Flag, "none", "option that sets it: `-l` or `--long`. A boolean's takes no value"),
        open("help", Kind::Line, "none", "one line for people"),
    ],
    together: r#""allOf": [
  { "if": { "required": ["type"], "properties": { "type": { "const": "string" } } }, "then": { "properties": { "default": { "type": "string" } } } },
  { "if": { "required": ["type"], "properties": { "type": { "const": "integer" } } }, "then": { "properties": { "default": { "type": "integer" } } } },
  { "if": { "required": ["type"], "properties": { "type": { "const": "boolean" } } }, "then": { "properties": { "default": { "type": "boolean" } } } },
  { "if": { "required": ["type"], "properties": { "type": { "const": "duration-ms" } } }, "then": { "properties": { "default": { "type": "integer", "minimum": 0 } } } },
  { "not": { "required": ["default", "required"], "properties": { "required": { "const": true } } } },
  { "not": { "required": ["default", "repeated"], "properties": { "repeated": { "const": true } } } }
]"#,
};

static PROVIDE: Shape = shape(
    "[[provide]]",
    "what the program serves in the namespace",
    &[
        required("path", Kind::Path, "where it is registered"),
        required("contract", Kind::Text, "what clients talk; `Directory` takes over everything below the path as well"),
    ],
);

static DEVICE: Shape = shape(
    "[[device]]",
    "a device that the program opens",
    &[
        required(
            "name",
            Kind::Name,
            "the program's name for it; the device of that name, of the machine or found on a bus, unless the system manifest names another",
        ),
        optional(
            "ports",
            Kind::List(&Kind::Range),
            "[]",
            "I/O ports that it consists of, `\"first+count\"`: `[\"0x3f8+8\"]`",
        ),
        optional(
            "memory",
            Kind::List(&Kind::Range),
            "[]",
            "device memory that it consists of: `[\"0xfee00000+0x1000\"]`",
        ),
        optional(
            "interrupts",
            Kind::List(&Kind::Number(0, u32::MAX as i64)),
            "[]",
            "interrupt lines that it uses: `[4]`",
        ),
        open(
            "names",
            Kind::List(&Kind::Name),
            "`range-0`, ..., `interrupt-0`, ...",
            "fields of the device's object: ports, memory, interrupts, in their order",
        ),
        optional(
            "registers",
            Kind::Map(&Kind::Module),
            "{}",
            "Rust path of the map of registers (`layout::registers`) in the range of this name",
        ),
        open(
            "object",
            Kind::Module,
            "`sip::hardware::Hardware`",
            "Rust path of the type that a device without parts is opened as; it implements `sip::device::DeviceObject`",
        ),
    ],
);

static REQUIRES: Shape = shape(
    "[[requires]]",
    "a program that must be installed for this one to be",
    &[
        required("program", Kind::Name, "its name; not the program's own"),
        open("version", Kind::AtLeast, "any", "the oldest that will do: `\">=1.2\"` or `\">=1.2.3\"`"),
    ],
);

static QUOTA: Shape = shape(
    "[quota]",
    "what the program may use up",
    &[
        optional("memory_kib", Kind::Number(4, Quota::MAX.memory_kib as i64), "1024", "pages of memory, in KiB"),
        optional("block_kib", Kind::Number(0, Quota::MAX.block_kib as i64), "1024", "blocks for messages, in KiB"),
        optional("threads", Kind::Number(1, Quota::MAX.threads as i64), "8", "threads at a time"),
        optional("handles", Kind::Number(0, Quota::MAX.handles as i64), "128", "handles at a time"),
        optional("channels", Kind::Number(0, Quota::MAX.channels as i64), "64", "channels it created, at a time"),
        optional("children", Kind::Number(0, Quota::MAX.children as i64), "0", "child processes at a time"),
        optional(
            "stack_kib",
            Kind::Number(Quota::USUAL_STACK_KIB as i64, Quota::MAX.stack_kib as i64),
            "256",
            "the stack of each thread, in KiB: 256, 512, 1024, 2048, 4096 or 8192; beyond 256 it counts as `memory_kib`",
        ),
    ],
);

/// An hour, in milliseconds: an upper bound for restarts.
const HOUR_MS: i64 = 3_600_000;

static SUPERVISION: Shape = shape(
    "[supervision]",
    "what happens when the program ends",
    &[
        optional(
            "restart",
            Kind::Word(Restart::WORDS),
            "\"never\"",
            "`always`, `on-failure` (not after an exit with status 0), `never`",
        ),
        optional(
            "backoff_ms",
            Kind::Number(0, HOUR_MS),
            "10",
            "before the first restart; doubled for each that follows soon",
        ),
        open("backoff_max_ms", Kind::Number(0, HOUR_MS), "1000, or `backoff_ms` if that is more", "the longest wait"),
        open("limit", Kind::Number(1, HOUR_MS), "none", "restarts in a row after which it is given up"),
        optional(
            "ending_ms",
            Kind::Number(0, HOUR_MS),
            "0",
            "how long it may take to end by itself when it is stopped or the system ends: its names are taken out, which its provider endpoints hear of as `ChannelClosed`; 0: it is ended at once",
        ),
    ],
);

static PERMISSIONS: Shape = shape(
    "[permissions]",
    "powers beyond the program's endpoints",
    &[optional(
        "list",
        Kind::List(&Kind::Word(Permission::WORDS)),
        "[]",
        "`diagnostics` (records of processes, channels, counters), `stop-any` (end others' processes), `power` (end the machine), `system-manifest` (read it, ask which devices exist, give devices to children), `bus` (offer the devices of a bus to drivers), `wall-clock` (set the time of day), `assign-role` (invoke programs in a role), `audit` (note refusals), `install` (install programs into the running system and uninstall them)",
    )],
);

static DOMAIN: Shape = shape(
    "[domain]",
    "where the program runs",
    &[optional(
        "kind",
        Kind::Word(Domain::WORDS),
        "\"kernel\"",
        "what contains it at least: `kernel`, the types of its code; `ring-3`, a hardware domain; `ring-0`, an address space of its own with the processor's privileges, or a `ring-3` domain. A system without it does not take the program",
    )],
);
