//! The C emitter: for each contract an endpoint type per end, a function for each message that it sends, and one that
//! receives, as a header of static inline functions.
//!
//! The state of a conversation is a value in the endpoint: C's types do not hold a program to the contract, so a
//! function for a message that may not be sent now does nothing and says so. That is an aid. What holds the program to
//! the contract is the kernel, which checks each message.
//!
//! Generated code includes `sing.h`, whose functions and types begin with `sing_`.

use abi::NO_TRANSITION;

use super::Side;
use super::needed::Needed;
use super::rust::in_buffer_order;
use crate::naming;
use crate::syntax::Passing;
use crate::unit::{
    Argument, ArgumentKind, Contract, Message, Scalar, Type, TypeIndex, TypeKind, Unit, Value, ValueType,
};

/// Emits a header for the contracts with these names; others of the unit appear as endpoints in messages only.
pub fn emit_c(unit: &Unit, names: &[&str]) -> String {
    let mut emitter = Emitter::new(unit, Host::Kernel);
    unit.contracts.iter().for_each(|contract| emitter.endpoints(contract));
    for contract in unit.contracts.iter().filter(|contract| names.contains(&contract.name.as_str())) {
        emitter.contract(contract);
    }
    emitter.out
}

/// Emits the header of a contract for WebAssembly programs in C: the same functions over `sing_guest.h`, for this contract
/// and whatever its messages carry, with the records by which the module is checked. Empty if the unit does not have it.
pub fn emit_c_guest(unit: &Unit, name: &str) -> String {
    let Some(index) = unit.contracts.iter().position(|contract| contract.name == name) else { return String::new() };
    let needed = Needed::by(unit, index);
    let contracts: Vec<&Contract> = needed.contracts.iter().filter_map(|index| unit.contracts.get(*index)).collect();
    let guard = format!("SING_CONTRACT_{}_H", naming::constant(name)).to_ascii_uppercase();
    let mut emitter = Emitter::new(unit, Host::Template);
    emitter.line(&format!("/* Bindings of the contract {name}: cargo sing contract {name} --format wasm-c */\n#ifndef {guard}\n#define {guard}\n"));
    emitter.line("#include \"sing_guest.h\"\n");
    for contract in &contracts {
        emitter.once(&format!("{}_ends", contract.name), |emitter| {
            emitter.endpoints(contract);
            emitter.record(contract);
        });
    }
    for contract in &contracts {
        emitter.once(&contract.name, |emitter| {
            emitter.contract(contract);
            emitter.open(contract);
        });
    }
    emitter.line("\n#endif");
    emitter.out
}

/// The prefix of a contract's names in C.
fn prefix(contract: &Contract) -> String {
    name(&contract.name)
}

/// A name in C: lower case with underscores.
pub fn name(text: &str) -> String {
    let name = naming::snake(text);
    let is_keyword = matches!(
        name.as_str(),
        "auto"
            | "bool"
            | "case"
            | "char"
            | "default"
            | "double"
            | "float"
            | "goto"
            | "inline"
            | "int"
            | "long"
            | "register"
            | "restrict"
            | "short"
            | "signed"
            | "sizeof"
            | "switch"
            | "typedef"
            | "union"
            | "unsigned"
            | "void"
            | "volatile"
    );
    if is_keyword { format!("{name}_") } else { name }
}

/// A name of a constant in C.
fn constant(prefix: &str, text: &str) -> String {
    format!("{prefix}_{}", naming::constant(text)).to_ascii_uppercase()
}

/// Who performs what a header calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Host {
    /// The kernel, through `sing.h`; there is one header for all contracts.
    Kernel,
    /// The template of WebAssembly programs, through `sing_guest.h`; a program may include several headers.
    Template,
}

struct Emitter<'a> {
    unit: &'a Unit,
    host: Host,
    out: String,
    /// Types that the header has.
    declared: Vec<bool>,
}

impl<'a> Emitter<'a> {
    fn new(unit: &'a Unit, host: Host) -> Emitter<'a> {
        Emitter { unit, host, out: String::new(), declared: vec![false; unit.types.len()] }
    }

    /// Text that other headers may have too, under a name of its own.
    fn once(&mut self, name: &str, content: impl FnOnce(&mut Self)) {
        if self.host == Host::Kernel {
            return content(self);
        }
        let guard = format!("SING_HAS_{}", naming::constant(name)).to_ascii_uppercase();
        self.line(&format!("#ifndef {guard}\n#define {guard}"));
        content(self);
        self.line("#endif");
    }

    fn endpoints(&mut self, contract: &Contract) {
        for side in Side::BOTH {
            let end = side.c_name();
            self.line(&format!("/* The {} end of a channel of {}. */", side.long(), contract.name));
            let name = prefix(contract);
            self.line(&format!("typedef struct {name}_{end} {{ uint64_t handle; uint16_t state; }} {name}_{end};"));
        }
    }

    /// The record of a contract in a custom section: the length of its name, the name, the fingerprint.
    fn record(&mut self, contract: &Contract) {
        let bytes: Vec<String> = contract.fingerprint.iter().map(u8::to_string).collect();
        let (name, length) = (&contract.name, contract.name.len());
        self.line(&format!("SING_RECORD(\".byte {length}\\n.ascii \\\"{name}\\\"\\n.byte {}\\n\")", bytes.join(",")));
    }

    fn open(&mut self, contract: &Contract) {
        let (name, prefix) = (&contract.name, prefix(contract));
        self.line(&format!("/* Binds a path of the namespace, where {name} is served, to a new channel. */"));
        self.line(&format!("static inline sing_status {prefix}_open(const char *path, {prefix}_imp *imp)\n{{"));
        self.line("    uint64_t handle;");
        self.line(&format!("    sing_status status = sing_open(path, {}, &handle);", constant(&prefix, "contract")));
        self.line(&format!("    if (status == SING_OK)\n        *imp = ({prefix}_imp){{ handle, 0 }};"));
        self.line("    return status;\n}");
    }

    fn line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    fn comment(&mut self, lines: &[String], otherwise: &str) {
        let text = if lines.is_empty() { otherwise.to_string() } else { lines.join(" ") };
        // A contract's text could end the comment.
        let text = text.replace("*/", "* /").replace("/*", "/ *");
        self.line(&format!("/* {} */", text.trim()));
    }

    fn contract(&mut self, contract: &Contract) {
        let prefix = prefix(contract);
        self.line("");
        self.comment(&contract.documentation, &format!("Contract {}.", contract.name));
        let tag = abi::name_tag(&contract.name);
        self.line(&format!("#define {} UINT64_C({tag:#x})", constant(&prefix, "contract")));
        self.line("/* Its states. */");
        self.line("enum {");
        for (number, state) in contract.states.iter().enumerate() {
            let name = constant(&format!("{prefix}_state"), &state.rust_name);
            self.line(&format!("    {name} = {number},"));
        }
        self.line("};");
        self.line("/* Tags of its messages. */");
        self.line("enum {");
        for (tag, message) in contract.messages.iter().enumerate() {
            self.line(&format!("    {} = {tag},", constant(&prefix, &message.name)));
        }
        self.line("};");
        for message in &contract.messages {
            for argument in &message.arguments {
                let (ArgumentKind::Inline(value) | ArgumentKind::Block { element: value, .. }) = &argument.kind else {
                    continue;
                };
                self.declare_value(value);
                if let ArgumentKind::Block { element, .. } = &argument.kind {
                    let name = constant(&prefix, &format!("{}_{}_type", message.name, argument.name));
                    let tag = abi::type_tag(&self.unit.canonical_text(element));
                    self.line(&format!("#define {name} UINT64_C({tag:#x})"));
                }
            }
        }
        self.new_channel(contract, &prefix);
        for side in Side::BOTH {
            self.sends(contract, &prefix, side);
            self.receive(contract, &prefix, side);
            self.close(&prefix, side);
        }
    }

    fn new_channel(&mut self, contract: &Contract, prefix: &str) {
        let start = contract.states.first().map_or(String::new(), |state| state.name.clone());
        self.line(&format!("/* Creates a channel in state {start}, and gives both its ends. */"));
        self.line(&format!("static inline sing_status {prefix}_new_channel({prefix}_imp *imp, {prefix}_exp *exp)\n{{"));
        self.line(&format!("    sing_answer answer = sing_channel_create({});", constant(prefix, "contract")));
        self.line("    if (answer.status == SING_OK) {");
        self.line(&format!("        *imp = ({prefix}_imp){{ answer.value, 0 }};"));
        self.line(&format!("        *exp = ({prefix}_exp){{ sing_word(0), 0 }};"));
        self.line("    }");
        self.line("    return answer.status;");
        self.line("}");
    }

    fn close(&mut self, prefix: &str, side: Side) {
        let end = side.c_name();
        self.line("/* Closes it: the peer receives what is queued, then SING_CLOSED. */");
        self.line(&format!(
            "static inline void {prefix}_{end}_close({prefix}_{end} *self)\n{{\n    \
             sing_channel_close(self->handle);\n    self->handle = 0;\n}}"
        ));
    }

    /// A table of the next states after a message, by state.
    fn next_states(contract: &Contract, tag: usize) -> String {
        let next = |state: &abi::StateRow| state.next.get(tag).copied().unwrap_or(NO_TRANSITION).to_string();
        contract.automaton.states.iter().map(next).collect::<Vec<_>>().join(", ")
    }

    fn sends(&mut self, contract: &Contract, prefix: &str, side: Side) {
        let messages = contract.messages.iter().enumerate();
        for (tag, message) in messages.filter(|(_, message)| message.direction == side.sends()) {
            let end = side.c_name();
            self.comment(&message.documentation, &format!("Sends {}.", message.name));
            let mut parameters = vec![format!("{prefix}_{end} *self")];
            parameters.extend(message.arguments.iter().map(|argument| {
                let kind = self.argument_type(argument);
                self.declarator(&kind, argument, &parameter_name(argument))
            }));
            self.line(&format!(
                "static inline sing_status {prefix}_{end}_send_{}({})\n{{",
                naming::snake(&message.name),
                parameters.join(", ")
            ));
            self.line(&format!("    static const uint16_t next[] = {{ {} }};", Self::next_states(contract, tag)));
            self.line("    if (self->state >= sizeof next / sizeof *next || next[self->state] == SING_NO_STATE)");
            self.line("        return SING_WRONG_STATE;");
            if !message.arguments.is_empty() {
                self.line("    unsigned at = 0;");
            }
            for argument in in_buffer_order(message) {
                let name = parameter_name(argument);
                match &argument.kind {
                    ArgumentKind::Inline(value) => self.put(value, &name, 1),
                    ArgumentKind::Block { .. } => self.line(&format!("    sing_put_block(&at, {name}.handle);")),
                    ArgumentKind::Endpoint { .. } | ArgumentKind::Any { .. } => {
                        self.line(&format!("    sing_put(&at, {name}.handle);"));
                    }
                }
            }
            self.line(&format!(
                "    sing_answer answer = sing_channel_send(self->handle, UINT64_C({:#x}));",
                message_word(contract, tag)
            ));
            self.line("    if (answer.status == SING_OK)");
            self.line("        self->state = next[self->state];");
            self.line("    return answer.status;");
            self.line("}");
        }
    }

    fn receive(&mut self, contract: &Contract, prefix: &str, side: Side) {
        let end = side.c_name();
        let received: Vec<(usize, &Message)> =
            contract.messages.iter().enumerate().filter(|(_, message)| message.direction != side.sends()).collect();
        self.line(&format!("/* What the {} end receives: the member of its tag. */", side.long()));
        self.line(&format!("typedef struct {prefix}_{end}_message {{"));
        self.line("    uint16_t tag;");
        let with_arguments: Vec<_> = received.iter().filter(|(_, message)| !message.arguments.is_empty()).collect();
        if !with_arguments.is_empty() {
            self.line("    union {");
            for (_, message) in &with_arguments {
                self.line("        struct {");
                for argument in &message.arguments {
                    let kind = self.argument_type(argument);
                    let field = self.declarator(&kind, argument, &parameter_name(argument));
                    self.line(&format!("            {field};"));
                }
                self.line(&format!("        }} {};", name(&message.name)));
            }
            self.line("    };");
        }
        self.line(&format!("}} {prefix}_{end}_message;"));
        self.line(
            "/* Waits until the deadline for the next message. SING_CLOSED: the peer has closed, and all its messages",
        );
        self.line("   have been received. */");
        self.line(&format!(
            "static inline sing_status {prefix}_{end}_receive({prefix}_{end} *self, uint64_t deadline, \
             {prefix}_{end}_message *into)\n{{"
        ));
        self.line("    sing_answer answer = sing_channel_receive(self->handle, deadline);");
        self.line("    if (answer.status == SING_CLOSED)");
        self.line("        sing_free_returned(self->handle);");
        self.line("    if (answer.status != SING_OK)");
        self.line("        return answer.status;");
        if !with_arguments.is_empty() {
            self.line("    unsigned at = 0;");
        }
        self.line("    into->tag = (uint16_t)answer.value;");
        self.line("    switch (into->tag) {");
        for (tag, message) in received {
            self.line(&format!("    case {tag}: {{"));
            self.line(&format!("        static const uint16_t next[] = {{ {} }};", Self::next_states(contract, tag)));
            for argument in in_buffer_order(message) {
                let place = format!("into->{}.{}", name(&message.name), parameter_name(argument));
                match &argument.kind {
                    ArgumentKind::Inline(value) => self.take(value, &place, 2),
                    ArgumentKind::Block { .. } => self.line(&format!("        {place} = sing_take_block(&at);")),
                    ArgumentKind::Endpoint { state, .. } => {
                        self.line(&format!("        {place}.handle = sing_take(&at);"));
                        self.line(&format!("        {place}.state = {state};"));
                    }
                    ArgumentKind::Any { .. } => self.line(&format!("        {place}.handle = sing_take(&at);")),
                }
            }
            self.line("        if (self->state < sizeof next / sizeof *next)");
            self.line("            self->state = next[self->state];");
            self.line("        break;");
            self.line("    }");
        }
        self.line("    default:");
        self.line("        return SING_CONTRACT_MISMATCH;");
        self.line("    }");
        self.line("    return SING_OK;");
        self.line("}");
    }

    fn argument_type(&self, argument: &Argument) -> String {
        match &argument.kind {
            ArgumentKind::Inline(value) => self.element_type(value),
            ArgumentKind::Block { passing: Passing::Owned, .. } => "sing_block".into(),
            ArgumentKind::Block { .. } => "sing_lent_block".into(),
            ArgumentKind::Endpoint { contract, importer, .. } => {
                let side = if *importer { Side::Importer } else { Side::Exporter };
                let other = self.unit.contracts.get(*contract).map_or(String::new(), prefix);
                format!("{other}_{}", side.c_name())
            }
            ArgumentKind::Any { .. } => "sing_endpoint".into(),
        }
    }

    /// A parameter or field of this type.
    fn declarator(&self, kind: &str, argument: &Argument, name: &str) -> String {
        match &argument.kind {
            ArgumentKind::Inline(Value { length: Some(length), .. }) => format!("{kind} {name}[{length}]"),
            _ => format!("{kind} {name}"),
        }
    }

    fn element_type(&self, value: &Value) -> String {
        match value.of {
            ValueType::Scalar(scalar) => scalar_type(scalar).into(),
            ValueType::Declared(index) => self.type_name(index),
        }
    }

    fn type_name(&self, index: TypeIndex) -> String {
        let Some(declared) = self.unit.types.get(index) else { return String::new() };
        match declared.contract.and_then(|owner| self.unit.contracts.get(owner)) {
            Some(owner) => format!("{}_{}", prefix(owner), naming::snake(&declared.name)),
            None => name(&declared.name),
        }
    }

    fn declare_value(&mut self, value: &Value) {
        if let ValueType::Declared(index) = value.of {
            self.declare(index);
        }
    }

    /// Declares a type, after those that it contains.
    fn declare(&mut self, index: TypeIndex) {
        let unit = self.unit;
        let Some(declared) = unit.types.get(index).filter(|_| !self.declared[index]) else { return };
        self.declared[index] = true;
        if let TypeKind::Struct(fields) = &declared.kind {
            fields.iter().for_each(|field| self.declare_value(&field.value));
        }
        let type_name = self.type_name(index);
        self.once(&format!("{type_name}_type"), |emitter| emitter.definition(declared, &type_name));
    }

    fn definition(&mut self, declared: &Type, type_name: &str) {
        self.comment(&declared.documentation, &format!("{}.", declared.name));
        match &declared.kind {
            TypeKind::Enum(variants) => {
                self.line(&format!("typedef uint8_t {type_name};"));
                self.constants(type_name, variants.iter().map(|variant| variant.name.as_str()), |number| {
                    number.to_string()
                });
            }
            TypeKind::Flags { number, flags } => {
                self.line(&format!("typedef {} {type_name};", scalar_type(*number)));
                self.constants(type_name, flags.iter().map(|flag| flag.name.as_str()), |place| {
                    format!("UINT64_C(1) << {place}")
                });
            }
            TypeKind::Struct(fields) => {
                self.line(&format!("typedef struct {type_name} {{"));
                for field in fields {
                    let kind = self.element_type(&field.value);
                    let array = field.value.length.map_or(String::new(), |length| format!("[{length}]"));
                    self.line(&format!("    {kind} {}{array};", name(&field.name)));
                }
                self.line(&format!("}} {type_name};"));
                self.struct_words(declared, type_name);
            }
        }
    }

    fn constants<'n>(
        &mut self,
        type_name: &str,
        names: impl Iterator<Item = &'n str>,
        value: impl Fn(usize) -> String,
    ) {
        for (number, name) in names.enumerate() {
            let name = constant(type_name, name);
            self.line(&format!("#define {name} (({type_name})({}))", value(number)));
        }
    }

    /// The functions that put a struct into a message, and take it from one.
    fn struct_words(&mut self, declared: &Type, type_name: &str) {
        let TypeKind::Struct(fields) = &declared.kind else { return };
        self.line(&format!("static inline void {type_name}_put(unsigned *in, {type_name} value)\n{{"));
        self.line("    unsigned at = *in;");
        for field in fields {
            self.put(&field.value, &format!("value.{}", name(&field.name)), 1);
        }
        self.line("    *in = at;\n}");
        self.line(&format!("static inline {type_name} {type_name}_take(unsigned *in)\n{{"));
        self.line(&format!("    {type_name} value;\n    unsigned at = *in;"));
        for field in fields {
            self.take(&field.value, &format!("value.{}", name(&field.name)), 1);
        }
        self.line("    *in = at;\n    return value;\n}");
    }

    fn put(&mut self, value: &Value, place: &str, depth: usize) {
        let indent = "    ".repeat(depth);
        match value.length {
            Some(length) if value.is_bytes() => {
                self.line(&format!("{indent}sing_put_bytes(&at, {place}, {length});"));
            }
            Some(length) => {
                let index = format!("index{depth}");
                self.line(&format!("{indent}for (unsigned {index} = 0; {index} < {length}; {index}++)"));
                let element = Value { length: None, ..*value };
                self.put(&element, &format!("{place}[{index}]"), depth + 1);
            }
            None => match value.of {
                ValueType::Scalar(scalar) => {
                    self.line(&format!("{indent}sing_put(&at, ({}){place});", unsigned_type(scalar)));
                }
                ValueType::Declared(index) => match self.unit.types.get(index).map(|declared| &declared.kind) {
                    Some(TypeKind::Struct(_)) => {
                        let type_name = self.type_name(index);
                        self.line(&format!("{indent}{type_name}_put(&at, {place});"));
                    }
                    _ => self.line(&format!("{indent}sing_put(&at, {place});")),
                },
            },
        }
    }

    fn take(&mut self, value: &Value, place: &str, depth: usize) {
        let indent = "    ".repeat(depth);
        match value.length {
            Some(length) if value.is_bytes() => {
                self.line(&format!("{indent}sing_take_bytes(&at, {place}, {length});"));
            }
            Some(length) => {
                let index = format!("index{depth}");
                self.line(&format!("{indent}for (unsigned {index} = 0; {index} < {length}; {index}++)"));
                let element = Value { length: None, ..*value };
                self.take(&element, &format!("{place}[{index}]"), depth + 1);
            }
            None => {
                let kind = self.element_type(value);
                let is_struct = matches!(value.of, ValueType::Declared(index)
                    if matches!(self.unit.types.get(index).map(|declared| &declared.kind), Some(TypeKind::Struct(_))));
                if is_struct {
                    self.line(&format!("{indent}{place} = {kind}_take(&at);"));
                } else {
                    self.line(&format!("{indent}{place} = ({kind})sing_take(&at);"));
                }
            }
        }
    }
}

/// The name of an argument as a parameter and a field.
fn parameter_name(argument: &Argument) -> String {
    let name = name(&argument.name);
    if matches!(name.as_str(), "self" | "at" | "next" | "answer" | "into" | "deadline") {
        format!("{name}_")
    } else {
        name
    }
}

/// The message word of a tag, from the automaton that the kernel has.
fn message_word(contract: &Contract, tag: usize) -> u64 {
    contract.automaton.messages.get(tag).map_or(0, |shape| shape.message_word(tag as u16))
}

fn scalar_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::Byte => "uint8_t",
        Scalar::Ushort => "uint16_t",
        Scalar::Uint | Scalar::Char => "uint32_t",
        Scalar::Ulong => "uint64_t",
        Scalar::Sbyte => "int8_t",
        Scalar::Short => "int16_t",
        Scalar::Int => "int32_t",
        Scalar::Long => "int64_t",
    }
}

fn unsigned_type(scalar: Scalar) -> &'static str {
    match scalar.bytes() {
        1 => "uint8_t",
        2 => "uint16_t",
        4 => "uint32_t",
        _ => "uint64_t",
    }
}
