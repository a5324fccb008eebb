//! A program's manifest in resolved form: names are numbers, defaults are filled in.
//!
//! The order of the lists is part of the ABI: the kernel's index of a contract, endpoint slot, parameter or device is
//! the one here. Deliberately not here: TOML (see the crate `manifest`).

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use abi::Automaton;
use serde::{Deserialize, Serialize};

use crate::assertions::Assertions;
use crate::device::DeviceNeed;
use crate::quota::Quota;
use crate::requirement::Requirement;

/// Bytes of a digest: BLAKE3 of an image, SHA-256 of anything else.
pub type Digest = [u8; 32];

/// A program's manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Name of the program, for users and `process_create`: `[a-z][a-z0-9-]*`.
    pub name: String,
    /// Publisher; the second half of the program's principal.
    pub publisher: String,
    /// Version of the program.
    pub version: Version,
    /// ABI version it was built for.
    pub abi: u32,
    /// Category of the program.
    pub category: Category,
    /// One-line summary for users.
    pub summary: String,
    /// Code that the program runs.
    pub code: Code,
    /// Contracts used by the image.
    pub contracts: Vec<ContractUse>,
    /// Endpoints given at start, by slot.
    pub endpoints: Vec<EndpointSlot>,
    /// Parameters, by index.
    pub parameters: Vec<Parameter>,
    /// Providers that it registers in the namespace.
    pub provides: Vec<Provide>,
    /// Devices that it opens, by index.
    pub devices: Vec<DeviceNeed>,
    /// Required programs.
    pub requires: Vec<Requirement>,
    /// Resource limits.
    pub quota: Quota,
    /// Restart policy.
    pub supervision: Supervision,
    /// Permissions beyond its endpoints.
    pub permissions: Vec<Permission>,
    /// Protection domain that it asks for at least.
    pub domain: Domain,
    /// Assertions about its image.
    pub assertions: Assertions,
}

impl Manifest {
    /// Creates a manifest of version 0.1.0 for this ABI without contracts, endpoints and permissions, with the default
    /// quotas. The caller fills in the rest.
    pub fn plain(name: &str, publisher: &str, category: Category, code: Code) -> Manifest {
        Manifest {
            name: name.into(),
            publisher: publisher.into(),
            version: Version { major: 0, minor: 1, patch: 0 },
            abi: abi::ABI_VERSION,
            category,
            summary: String::from("is nothing yet"),
            code,
            contracts: Vec::new(),
            endpoints: Vec::new(),
            parameters: Vec::new(),
            provides: Vec::new(),
            devices: Vec::new(),
            requires: Vec::new(),
            quota: Quota::default(),
            supervision: Supervision::default(),
            permissions: Vec::new(),
            domain: Domain::Kernel,
            assertions: Assertions::default(),
        }
    }

    /// The program's principal as text: `name.publisher`.
    pub fn principal(&self) -> String {
        let mut text = self.name.clone();
        text.push('.');
        text.push_str(&self.publisher);
        text
    }

    /// Checks that a WebAssembly program is what its template's code expects: its contracts, endpoints and
    /// parameters begin with the template's, and it has no devices.
    ///
    /// # Errors
    /// The list that differs.
    pub fn fits_template(&self, template: &Manifest) -> Result<(), &'static str> {
        let lists = [
            (self.contracts.starts_with(&template.contracts), "contracts"),
            (self.endpoints.starts_with(&template.endpoints), "endpoints"),
            (self.parameters.starts_with(&template.parameters), "parameters"),
            (self.devices.is_empty() && template.devices.is_empty(), "devices"),
            (template.provides.is_empty(), "provided paths"),
        ];
        lists.into_iter().find(|(is_same, _)| !is_same).map_or(Ok(()), |(_, list)| Err(list))
    }

    /// Index and slot of the endpoint with this name.
    pub fn endpoint(&self, name: &str) -> Option<(usize, &EndpointSlot)> {
        self.endpoints.iter().enumerate().find(|(_, slot)| slot.name == name)
    }

    /// Index and description of the parameter with this name.
    pub fn parameter(&self, name: &str) -> Option<(usize, &Parameter)> {
        self.parameters.iter().enumerate().find(|(_, parameter)| parameter.name == name)
    }

    /// Index of the contract with this name.
    pub fn contract(&self, name: &str) -> Option<usize> {
        self.contracts.iter().position(|contract| contract.name == name)
    }

    /// Returns whether the permission is granted.
    pub fn permits(&self, permission: Permission) -> bool {
        self.permissions.contains(&permission)
    }
}

/// `major.minor.patch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    /// Incremented for breaking changes.
    pub major: u32,
    /// Incremented for additions.
    pub minor: u32,
    /// Incremented for any other change.
    pub patch: u32,
}

impl Version {
    /// Parses `major.minor.patch`, all decimal without leading zeros.
    pub fn parse(text: &str) -> Option<Version> {
        let mut parts = text.split('.').map(|part| {
            let plain = part.bytes().all(|byte| byte.is_ascii_digit()) && (part.len() == 1 || !part.starts_with('0'));
            part.parse().ok().filter(|_| plain)
        });
        let version = Version { major: parts.next()??, minor: parts.next()??, patch: parts.next()?? };
        parts.next().is_none().then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

macro_rules! words {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $item_doc:literal])+ $item:ident = $word:literal,)* }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name { $($(#[doc = $item_doc])+ $item,)* }
        impl $name {
            /// All values, in the order of the documentation.
            pub const ALL: &[$name] = &[$($name::$item),*];
            /// Their keywords, in the same order.
            pub const WORDS: &[&str] = &[$($word),*];
            /// Keyword in a manifest.
            pub const fn word(self) -> &'static str {
                match self { $($name::$item => $word,)* }
            }
            /// Parses the keyword.
            pub fn from_word(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$item),)* _ => None }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words! {
    /// How the code of a WebAssembly module keeps to linear memory.
    Bounds {
        /// By addresses that are reserved behind it, where the machine has them.
        Guarded = "guarded",
        /// By comparing each index.
        Checked = "checked",
    }
}

words! {
    /// Category of a program.
    Category {
        /// A command started by users from the shell.
        Console = "console",
        /// A device driver.
        Driver = "driver",
        /// A service.
        Service = "service",
        /// A web application: answers a web server's requests.
        WebApplication = "web-application",
        /// A test program.
        Test = "test",
        /// An example.
        Example = "example",
    }
}

/// Code that a program runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Code {
    /// A sealed image, contained in the package.
    Image {
        /// BLAKE3 of the image file.
        digest: Digest,
    },
    /// Commands that the shell runs.
    Script {
        /// The commands.
        text: String,
    },
    /// An image like [`Image`](Self::Image), but of code that no compiler holds to its types: C, or Rust with `unsafe`. It
    /// runs only where each of its processes has a hardware domain of its own, whoever signed it.
    Unsafe {
        /// BLAKE3 of the image file.
        digest: Digest,
    },
    /// A WebAssembly module, contained in the package in place of an image. It is compiled where it is installed, and
    /// contracts and endpoints are those of its template.
    Wasm {
        /// BLAKE3 of the module.
        digest: Digest,
        /// Name of the template that plays its host, a program too.
        template: String,
        /// How its code is to keep to linear memory.
        bounds: Bounds,
    },
    /// A sealed image to which modules are added. Alone it is no program, and never runs.
    Template {
        /// BLAKE3 of the image file.
        digest: Digest,
    },
}

impl Code {
    /// Returns the digest of its image; `None` for a script, and for a module, which has no image of its own.
    pub fn image_digest(&self) -> Option<&Digest> {
        match self {
            Code::Image { digest } | Code::Unsafe { digest } | Code::Template { digest } => Some(digest),
            Code::Script { .. } | Code::Wasm { .. } => None,
        }
    }

    /// Returns the name of the template that plays the host of a WebAssembly module; `None` for other code.
    pub fn template(&self) -> Option<&str> {
        match self {
            Code::Wasm { template, .. } => Some(template),
            _ => None,
        }
    }

    /// Returns how the code of a WebAssembly module is to keep to linear memory; `None` for other code.
    pub fn bounds(&self) -> Option<Bounds> {
        match self {
            Code::Wasm { bounds, .. } => Some(*bounds),
            _ => None,
        }
    }

    /// Returns whether it is a template of WebAssembly programs.
    pub fn is_template(&self) -> bool {
        matches!(self, Code::Template { .. })
    }

    /// Returns whether it is machine code that no compiler holds to its types.
    pub fn is_unsafe(&self) -> bool {
        matches!(self, Code::Unsafe { .. })
    }
}

words! {
    /// Channel ends of a contract that a program handles.
    ContractSide {
        /// Importing ends: it is a client of exporters.
        Import = "import",
        /// Exporting ends: it serves importers.
        Export = "export",
        /// Both.
        Both = "both",
    }
}

/// A contract that the image uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractUse {
    /// Name of the contract.
    pub name: String,
    /// Ends that the program handles.
    pub side: ContractSide,
    /// SHA-256 of `automaton`.
    pub fingerprint: Digest,
    /// [`abi::Automaton`] in its canonical bytes.
    #[serde(deserialize_with = "crate::codec::bytes")]
    pub automaton: Vec<u8>,
    /// What the exporting end's answers wait for, and nothing else; `None`: answers of any imported contract. A claim of
    /// the publisher, for the analysis of deadlocks alone.
    pub waits_for: Option<Vec<Awaited>>,
}

/// An imported contract for whose answers a program's own answers wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaited {
    /// Index into [`Manifest::contracts`].
    pub contract: u16,
    /// Who answers.
    pub whose: Whose,
}

/// Who answers on an awaited contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Whose {
    /// Any program that serves it.
    Anyone,
    /// Other programs only, never one of the same name.
    Others,
    /// The program that serves the namespace.
    Namespace,
}

impl Whose {
    /// All values.
    pub const ALL: &[Whose] = &[Whose::Anyone, Whose::Others, Whose::Namespace];

    /// Suffix of the contract's name in a manifest.
    pub const fn suffix(self) -> &'static str {
        match self {
            Whose::Anyone => "",
            Whose::Others => " of others",
            Whose::Namespace => " of the namespace",
        }
    }

    /// Splits an entry of a manifest: `NAME`, `NAME of others`, `NAME of the namespace`.
    pub fn split(text: &str) -> (&str, Whose) {
        let qualified = Whose::ALL.iter().filter(|whose| **whose != Whose::Anyone);
        let found = qualified.filter_map(|&whose| Some((text.strip_suffix(whose.suffix())?, whose))).next();
        found.unwrap_or((text, Whose::Anyone))
    }
}

words! {
    /// An end of a channel.
    Side {
        /// The importing end.
        Importer = "imp",
        /// The exporting end.
        Exporter = "exp",
    }
}

/// An endpoint given to a program at start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointSlot {
    /// Name of the field in the program's `Startup`.
    pub name: String,
    /// Index into [`Manifest::contracts`].
    pub contract: u16,
    /// Side that the program gets.
    pub side: Side,
    /// State of the endpoint, by number.
    pub state: u16,
    /// Name of that state.
    pub state_name: String,
    /// Source of the endpoint.
    pub source: Source,
    /// Whether the program can start without it.
    pub optional: bool,
}

/// Whether an endpoint in the state can be given to a program at start: the conversation is not over. Unlike for a
/// move in a message, it need not be its side that sends next, since nothing is in flight meanwhile.
pub fn may_give(automaton: &Automaton, state: u16) -> bool {
    automaton.sender_in(state).is_some()
}

/// Source of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// The program's parent, which keeps the other end.
    Parent,
    /// Standard input: a pipe or the console.
    StandardInput,
    /// Standard output: a pipe or the console.
    StandardOutput,
    /// Bound to this absolute path of the namespace.
    Path(String),
}

impl Source {
    /// Parses the keyword or path.
    pub fn from_word(word: &str) -> Option<Source> {
        Some(match word {
            "parent" => Source::Parent,
            "stdin" => Source::StandardInput,
            "stdout" => Source::StandardOutput,
            path if is_path(path) => Source::Path(path.into()),
            _ => return None,
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Parent => "parent",
            Source::StandardInput => "stdin",
            Source::StandardOutput => "stdout",
            Source::Path(path) => path,
        })
    }
}

/// Returns whether the text is an absolute path without empty, `.` or `..` components: `/`, `/dev/disk0`.
pub fn is_path(text: &str) -> bool {
    text == "/"
        || text.strip_prefix('/').is_some_and(|rest| {
            rest.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains(char::is_control))
        })
}

/// Returns whether the text is a valid name of a program, instance, endpoint, parameter or device: `[a-z][a-z0-9-]*`,
/// at most 63 bytes.
pub fn is_name(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Prefix of the machine's own messages.
pub const SYSTEM_NAME: &str = "singularity";

/// Returns whether the text is a valid program name: any [name](is_name) but the system's own, because debug output
/// attributes lines by name.
pub fn is_program_name(text: &str) -> bool {
    is_name(text) && text != SYSTEM_NAME
}

words! {
    /// Types of parameters.
    ParameterKind {
        /// Any UTF-8 text.
        Text = "string",
        /// A 64-bit signed number.
        Integer = "integer",
        /// `true` or `false`.
        Boolean = "boolean",
        /// A number of milliseconds.
        DurationMs = "duration-ms",
    }
}

impl ParameterKind {
    /// Parses a value as given to a process or typed by a user.
    pub fn parse(self, text: &str) -> Option<Value> {
        match self {
            ParameterKind::Text => Some(Value::Text(text.into())),
            ParameterKind::Integer => match text.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(digits, 16).ok().map(Value::Integer),
                None => text.parse().ok().map(Value::Integer),
            },
            ParameterKind::Boolean => match text {
                "true" | "yes" | "on" | "1" => Some(Value::Boolean(true)),
                "false" | "no" | "off" | "0" => Some(Value::Boolean(false)),
                _ => None,
            },
            ParameterKind::DurationMs => milliseconds(text).map(Value::DurationMs),
        }
    }
}

/// A duration: `250` and `250ms` are milliseconds, `2s` are seconds, `5m` are minutes.
fn milliseconds(text: &str) -> Option<u64> {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000)];
    let unit = units.iter().find_map(|&(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (digits, factor) = unit.unwrap_or((text, 1));
    // `+5` parses as a number, but is no valid duration.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// Value of a parameter. `Display` gives the text passed to the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Value {
    /// Of type `string`.
    Text(String),
    /// Of type `integer`.
    Integer(i64),
    /// Of type `boolean`.
    Boolean(bool),
    /// Of type `duration-ms`.
    DurationMs(u64),
}

impl Value {
    /// Type of the value.
    pub fn kind(&self) -> ParameterKind {
        match self {
            Value::Text(_) => ParameterKind::Text,
            Value::Integer(_) => ParameterKind::Integer,
            Value::Boolean(_) => ParameterKind::Boolean,
            Value::DurationMs(_) => ParameterKind::DurationMs,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            Value::Integer(number) => f.write_str(&number.to_string()),
            Value::Boolean(value) => f.write_str(if *value { "true" } else { "false" }),
            Value::DurationMs(number) => f.write_str(&number.to_string()),
        }
    }
}

/// A parameter of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// Name of the field in the program's `Startup`.
    pub name: String,
    /// Type of its values.
    pub kind: ParameterKind,
    /// Default value; `None` for a repeated or required parameter.
    pub default: Option<Value>,
    /// Whether the program cannot start without a value.
    pub required: bool,
    /// Position among the arguments of a command, from 0.
    pub position: Option<u16>,
    /// Whether it takes any number of values; a repeated positional parameter is the last one.
    pub repeated: bool,
    /// Option of a command that sets it: `-l` or `--long`. A boolean's takes no value.
    pub flag: Option<String>,
    /// One-line help text.
    pub help: String,
}

impl Parameter {
    /// Creates an optional parameter without default, position, flag and help. The caller fills in the rest.
    pub fn plain(name: &str, kind: ParameterKind) -> Parameter {
        Parameter {
            name: name.into(),
            kind,
            default: None,
            required: false,
            position: None,
            repeated: false,
            flag: None,
            help: String::new(),
        }
    }
}

/// A provider that a program registers in the namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provide {
    /// Path of the registration.
    pub path: String,
    /// Index into [`Manifest::contracts`]: the contract of its clients.
    pub contract: u16,
}

words! {
    /// When to restart a program.
    Restart {
        /// On any exit.
        Always = "always",
        /// On any exit other than status 0.
        OnFailure = "on-failure",
        /// Never.
        Never = "never",
    }
}

/// Restart policy for a program started by the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supervision {
    /// When to restart it.
    pub restart: Restart,
    /// Delay before the first restart, in milliseconds; doubled for each further one in short succession.
    pub backoff_ms: u32,
    /// Maximum delay before a restart, in milliseconds.
    pub backoff_max_ms: u32,
    /// Maximum consecutive restarts without a healthy run; then it is given up.
    pub limit: Option<u32>,
    /// Grace period for a clean exit, in milliseconds: its names are deregistered first, which notifies it that there
    /// are no more clients. 0: it is killed immediately.
    pub ending_ms: u32,
}

impl Default for Supervision {
    fn default() -> Supervision {
        Supervision { restart: Restart::Never, backoff_ms: 10, backoff_max_ms: 1000, limit: None, ending_ms: 0 }
    }
}

words! {
    /// Permissions beyond a program's endpoints.
    Permission {
        /// Read the system's records of processes, channels and counters.
        Diagnostics = "diagnostics",
        /// Stop processes other than its children.
        StopAny = "stop-any",
        /// Shut down the machine.
        Power = "power",
        /// Read the system manifest.
        SystemManifest = "system-manifest",
        /// Offer the devices found on a bus to drivers.
        Bus = "bus",
        /// Set the time of day.
        WallClock = "wall-clock",
        /// Invoke a program in a role.
        AssignRole = "assign-role",
        /// Add refusals to the audit ring.
        Audit = "audit",
        /// Install programs into the running system and uninstall them.
        Install = "install",
    }
}

words! {
    /// Protection domain of a program.
    Domain {
        /// In the kernel's domain: isolated only by the types of its code.
        Kernel = "kernel",
        /// In a hardware domain, unprivileged: isolated by the MMU, whatever its code does.
        Ring3 = "ring-3",
        /// In an address space of its own, with the privileges of the processor: mistakes stay in it, attacks do not.
        Ring0 = "ring-0",
    }
}

impl Domain {
    /// Returns whether a program in this domain has what it asks for with another.
    pub fn gives(self, wanted: Domain) -> bool {
        let strength = |domain| match domain {
            Domain::Kernel => 0,
            Domain::Ring0 => 1,
            Domain::Ring3 => 2,
        };
        strength(self) >= strength(wanted)
    }
}
