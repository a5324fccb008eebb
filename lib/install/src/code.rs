//! Kinds of faults, each with a stable code.

use codes::codes;

/// Topic of a check. Every topic without a finding is a line of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// The package file can be parsed, and its manifest decoded.
    File,
    /// Signer, and its right to the name.
    Signature,
    /// The image: its digest, its structure, its instructions.
    Image,
    /// The target ABI version.
    Abi,
    /// The bill of materials.
    Bill,
    /// Name and version of the program.
    Name,
    /// Contracts: those of the image, and exporters of the imported ones.
    Contracts,
    /// Sources of its endpoints.
    Endpoints,
    /// Devices, registers and interrupts.
    Devices,
    /// Provided paths.
    Paths,
    /// Required programs.
    Dependencies,
    /// Its parameters, texts and script.
    Parameters,
    /// Quotas.
    Quotas,
    /// Restarts.
    Supervision,
    /// Permissions.
    Permissions,
    /// Programs and instances of the system, and their start order.
    System,
    /// Promises about reach.
    Policy,
}

impl Topic {
    /// All topics, in the order of a report.
    pub const ALL: &'static [Topic] = &[
        Topic::File,
        Topic::Signature,
        Topic::Image,
        Topic::Abi,
        Topic::Bill,
        Topic::Name,
        Topic::Contracts,
        Topic::Endpoints,
        Topic::Devices,
        Topic::Paths,
        Topic::Dependencies,
        Topic::Parameters,
        Topic::Quotas,
        Topic::Supervision,
        Topic::Permissions,
        Topic::System,
        Topic::Policy,
    ];

    /// Display name.
    pub const fn word(self) -> &'static str {
        match self {
            Topic::File => "file",
            Topic::Signature => "signature",
            Topic::Image => "image",
            Topic::Abi => "abi",
            Topic::Bill => "bill",
            Topic::Name => "name",
            Topic::Contracts => "contracts",
            Topic::Endpoints => "endpoints",
            Topic::Devices => "devices",
            Topic::Paths => "paths",
            Topic::Dependencies => "dependencies",
            Topic::Parameters => "parameters",
            Topic::Quotas => "quotas",
            Topic::Supervision => "supervision",
            Topic::Permissions => "permissions",
            Topic::System => "system",
            Topic::Policy => "policy",
        }
    }
}

codes! {
    /// The kind of a finding; its text (`I120`) is stable.
    pub enum Code;
    /// Topic whose proof it refutes.
    topic: Topic;
    NotAPackage = "I001", File, "the file is not a package";
    NotASystemImage = "I002", File, "the file is not a system image";
    Truncated = "I003", File, "the file is cut short";
    TrailingBytes = "I004", File, "bytes follow the end of the file's contents";
    ManifestUnreadable = "I005", File, "the manifest cannot be read";
    ManifestInvalid = "I006", File, "the manifest contradicts itself";
    SystemDamaged = "I007", File, "the head of the system image was changed";
    UntrustedKey = "I010", Signature, "nobody trusts the key";
    BadKey = "I011", Signature, "the key is none";
    BadSignature = "I012", Signature, "the signature is not the key's";
    Unsigned = "I013", Signature, "nobody signed the package";
    HalfSigned = "I014", Signature, "a signature without a key";
    UntrustedIssuer = "I015", Signature, "nobody trusts the last issuer";
    NotItsPublisher = "I016", Signature, "the key is for another publisher";
    WiderThanIssuer = "I017", Signature, "a certificate for more than its issuer's";
    MayNotSign = "I018", Signature, "a key that may only certify has signed";
    MayNotCertify = "I019", Signature, "a key that may only sign has certified";
    BrokenChain = "I020", Signature, "certificates that do not belong together";
    ChainTooLong = "I021", Signature, "too many certificates";
    BadCertificate = "I022", Signature, "a certificate that cannot be read";
    CertificateSignature = "I023", Signature, "a certificate's signature is not its issuer's";
    RevokedKey = "I024", Signature, "the key was revoked";
    RevokedSerial = "I025", Signature, "a certificate was revoked";
    PublisherNotAllowed = "I026", Signature, "the policy does not take the publisher";
    NotASystemSigner = "I027", Signature, "the key may not sign systems";
    SystemSignature = "I028", Signature, "the system's signature is not its key's";
    OtherIdentity = "I029", Signature, "not the package that the system was signed with";
    MoreRightsThanIssuer = "I091", Signature, "a certificate with more rights than its issuer's";
    NotNative = "I092", Signature, "native code without the right to it";
    ImageDigest = "I030", Image, "the image is not the one that was signed";
    ScriptWithImage = "I031", Image, "a script with an image";
    ImageTooLarge = "I032", Image, "the image is too large";
    NotElf = "I033", Image, "the image is not an ELF file";
    ElfMalformed = "I034", Image, "the image is not a sound ELF file";
    WrongMachine = "I035", Image, "the image is for another machine";
    NotPie = "I036", Image, "the image cannot be put anywhere";
    Interpreter = "I037", Image, "the image asks for a dynamic loader";
    ForeignSymbol = "I038", Image, "the image wants symbols of a library";
    ThreadLocal = "I039", Image, "the image has thread-local statics";
    DynamicFeature = "I040", Image, "the image wants something done at its load";
    WritableCode = "I041", Image, "a segment is writable and executable";
    WritableData = "I042", Image, "the image has writable statics";
    ZeroedData = "I043", Image, "the image has zeroed writable statics";
    SegmentsOverlap = "I044", Image, "two segments share a page";
    SegmentOutsideFile = "I045", Image, "a segment lies outside the file";
    NoCode = "I046", Image, "the image has no code";
    EntryOutsideCode = "I047", Image, "the image would start outside its code";
    RelocationKind = "I048", Image, "a relocation of a kind that there is not";
    RelocationTarget = "I049", Image, "a relocation would change code or what is not the image's";
    RelocationAddend = "I050", Image, "a relocation makes an address outside the image";
    UnknownInstruction = "I051", Image, "bytes of code that are no instruction";
    ForbiddenInstruction = "I052", Image, "an instruction that safe code never has";
    SegmentOverride = "I053", Image, "an access to the kernel's per-thread memory";
    BranchTarget = "I054", Image, "a branch into the middle of an instruction";
    StrayCode = "I055", Image, "executable bytes that belong to no section";
    ContractRecords = "I056", Image, "the image's list of contracts is damaged";
    StackStep = "I057", Image, "a stack that grows by more than a page at once";
    BadAssertion = "I058", Image, "an assertion about the image that cannot hold";
    AssertionFails = "I059", Image, "an assertion about the image does not hold";
    NotAModule = "I066", Image, "a WebAssembly program without a module";
    NoTemplate = "I067", Image, "the template of a WebAssembly program is not installed";
    TemplateManifest = "I068", Image, "a WebAssembly program for another version of its template";
    NotCompiled = "I069", Image, "a WebAssembly module that could not be compiled";
    NotTheTemplate = "I070", Image, "a compiled image that is not its template with code added";
    NotProven = "I071", Image, "compiled code that is not proven safe";
    TemplateRuns = "I072", System, "a template of WebAssembly programs as an instance";
    AbiVersion = "I060", Abi, "another ABI version";
    OtherReason = "I061", File, "a reason that this program has no code for";
    BillDigest = "I063", Bill, "the bill of materials is not the one that was signed";
    BillTooLarge = "I064", Bill, "the bill of materials is too large";
    BillNotText = "I065", Bill, "the bill of materials is not text";
    BadProgramName = "I101", Name, "a name that no program can have";
    BadPublisherName = "I102", Name, "a name that no publisher can have";
    AlreadyInstalled = "I103", Name, "a program of this name is installed";
    NotInstalled = "I104", Name, "no program of this name is installed";
    OlderVersion = "I105", Name, "a newer version is installed";
    SameVersion = "I106", Name, "another program of the same version is installed";
    OtherPublisher = "I107", Name, "the installed program is another publisher's";
    LookAlikePublisher = "I108", Name, "a publisher's name that is taken for another's";
    LookAlikeProgram = "I109", Name, "a program's name that is taken for another's";
    SignatureLost = "I110", Signature, "nobody signed what would take a signed program's place";
    UndeclaredMessage = "I119", Contracts, "the image sends a message that the manifest does not let it send";
    UndeclaredContract = "I120", Contracts, "the image uses a contract that the manifest does not list";
    ContractFingerprint = "I121", Contracts, "the image has another version of a contract than the manifest";
    BadAutomaton = "I122", Contracts, "a contract's automaton cannot be read";
    AutomatonFingerprint = "I123", Contracts, "a contract's automaton is not the one of its fingerprint";
    DuplicateContract = "I124", Contracts, "a contract is listed twice";
    NoExporter = "I125", Contracts, "nothing exports an imported contract";
    OtherContractVersion = "I126", Contracts, "what exports an imported contract has another version of it";
    ContractName = "I127", Contracts, "a name that no contract can have";
    TwoContracts = "I128", Contracts, "two programs have different contracts under one name";
    WaitsForOther = "I129", Contracts, "an answer waits for what the program does not import";
    SlotContract = "I130", Endpoints, "an endpoint of a contract that is not listed";
    SlotSide = "I131", Endpoints, "an endpoint's end is one that the program does not handle";
    SlotState = "I132", Endpoints, "an endpoint in a state in which it cannot be given";
    SlotPath = "I133", Endpoints, "an endpoint's path is none";
    DuplicateSlot = "I134", Endpoints, "two endpoints have one name";
    StandardPipe = "I135", Endpoints, "a standard stream that is not its end of a pipe";
    NoProvider = "I136", Endpoints, "nothing provides what an endpoint is bound to";
    BindRefused = "I137", Endpoints, "no rule lets an endpoint be bound";
    NoParent = "I138", Endpoints, "no program could start it";
    SlotBoundOtherEnd = "I139", Endpoints, "an endpoint that is bound to a path is not the importing end";
    DeviceName = "I140", Devices, "a name that no device can have";
    DuplicateDevice = "I141", Devices, "a device is listed twice";
    RangeImpossible = "I142", Devices, "addresses that no machine has";
    PortsOverlap = "I143", Devices, "I/O ports of another driver";
    MemoryOverlap = "I144", Devices, "device memory of another driver";
    InterruptShared = "I145", Devices, "an interrupt of another driver";
    DeviceTaken = "I146", Devices, "a device that another instance has";
    RangeTwice = "I147", Devices, "the same register twice in one manifest";
    ProvidePath = "I150", Paths, "a provided path is none";
    DuplicateProvide = "I151", Paths, "a path is provided twice by one program";
    ProvideContract = "I152", Paths, "a path is provided under a contract that is not exported";
    ProvideWithoutSlot = "I153", Paths, "nothing takes the clients of a provided path";
    PathTaken = "I154", Paths, "another instance provides the path";
    RequirementMissing = "I160", Dependencies, "a required program is not installed";
    RequirementTooOld = "I161", Dependencies, "a required program is too old";
    RequirementCycle = "I162", Dependencies, "programs require each other";
    RequirementItself = "I163", Dependencies, "a program requires itself";
    RequirementTwice = "I164", Dependencies, "a program is required twice";
    ParameterName = "I170", Parameters, "a name that no parameter can have";
    DuplicateParameter = "I171", Parameters, "two parameters have one name";
    ParameterIsEndpoint = "I172", Parameters, "a parameter and an endpoint have one name";
    DefaultType = "I173", Parameters, "a default that is not of its parameter's type";
    DefaultUseless = "I174", Parameters, "a default that is never used";
    PositionGap = "I175", Parameters, "positions that are not 0, 1, 2 and so on";
    RepeatedNotLast = "I176", Parameters, "a repeated parameter that is not the last";
    RequiredAfterOptional = "I177", Parameters, "a required position behind one that is not";
    BadFlag = "I178", Parameters, "a flag that cannot be typed";
    DuplicateFlag = "I179", Parameters, "two parameters have one flag";
    ControlCharacter = "I180", Parameters, "a text for people with control characters";
    NoSummary = "I181", Parameters, "no summary, or a long one";
    ScriptEmpty = "I182", Parameters, "a script without commands";
    ScriptWithoutShell = "I183", Parameters, "a script where no shell is installed";
    ParameterMissing = "I184", Parameters, "an instance lacks a required value";
    SettingLost = "I185", Parameters, "an instance sets a parameter that is no longer there";
    SettingType = "I186", Parameters, "an instance sets a parameter to a value of another type";
    QuotaRange = "I190", Quotas, "a quota that no program can have";
    QuotaHandles = "I191", Quotas, "fewer handles than endpoints";
    SupervisionRange = "I195", Supervision, "times of restarts that are out of range";
    SupervisionOrder = "I196", Supervision, "the longest wait is shorter than the first";
    SupervisionLimit = "I197", Supervision, "a limit of no restarts";
    SupervisionConsole = "I198", Supervision, "a console program that would be started again";
    DuplicatePermission = "I199", Permissions, "a permission is listed twice";
    MorePermissions = "I200", Permissions, "an upgrade that asks for more than was agreed to";
    ListTooLong = "I201", System, "a list with more than 256 entries";
    ProgramMissing = "I210", System, "a program that the system names is not there";
    ProgramUnnamed = "I211", System, "a program that the system does not name";
    ProgramTwice = "I212", System, "a program is there twice";
    PrimaryMissing = "I213", System, "the primary instance is not there";
    InstanceMissing = "I214", System, "an instance that another needs is not there";
    BootCycle = "I215", System, "instances wait for each other";
    NamedInParameter = "I216", System, "a program is started by name and is not there";
    RootProgram = "I217", System, "the root program cannot be taken out";
    DeviceLost = "I218", System, "an instance names a device that its program no longer has";
    ProvideLost = "I219", System, "an instance moves a path that its program no longer provides";
    EndpointLost = "I220", System, "an instance binds an endpoint that its program no longer has";
    InstanceMalformed = "I221", System, "an instance's settings do not fit its program";
    NeedsRestart = "I222", System, "a change that a system which runs cannot make";
    KernelRefuses = "I223", System, "the kernel does not take the program";
    NotAsKept = "I224", System, "a package file in the store is not the one that was kept";
    BadDomain = "I226", System, "a hardware domain that cannot be";
    NoDomain = "I227", System, "a program lacks the hardware domain that it asks for";
    UnsafeNotApart = "I228", System, "unsafe code without a hardware domain of its own";
    DenyBroken = "I230", Policy, "something comes into reach that must not";
    BadDeny = "I231", Policy, "a promise that cannot be read";
    BadRule = "I232", Policy, "a rule that cannot be read";
}
