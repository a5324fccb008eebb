//! The header `sing_abi.h`: the kernel's table of functions as inline functions in C.

use abi::{FUNCTIONS, Status, limits};

/// Numbers of statuses that exist are below.
const STATUSES: u64 = 64;

/// Returns the text of `sing_abi.h`, which `sing.h` includes.
pub fn emit_c_abi() -> String {
    let mut out = String::from(
        "/* The functions of the kernel. Made from the table of the ABI. */\n\
         #ifndef SING_ABI_H\n#define SING_ABI_H\n\n\
         typedef uint64_t sing_status;\n\n/* Statuses. */\nenum {\n",
    );
    for status in (0..STATUSES).map(Status::from_number).filter(|status| *status != Status::Unknown) {
        out.push_str(&format!(
            "    SING_{} = {}, /* {} */\n",
            shouted(&format!("{status:?}")),
            status as u64,
            status.text()
        ));
    }
    out.push_str("};\n\n");
    for (name, value) in [
        ("MESSAGE_WORDS", limits::MESSAGE_WORDS),
        ("STACK_SLOT_BYTES", limits::STACK_SLOT_BYTES),
        ("BLOCK_WORDS", limits::BLOCK_WORDS),
        ("TEXT_BYTES", limits::TEXT_BYTES),
    ] {
        out.push_str(&format!("#define SING_{name} {value}\n"));
    }
    out.push_str(
        "#define SING_NEVER UINT64_MAX\n\n\
         /* A status, and a value if that is SING_OK. */\n\
         typedef struct sing_answer { uint64_t status; uint64_t value; } sing_answer;\n\n\
         static inline const uint64_t *sing_table(void);\n",
    );
    for (number, function) in FUNCTIONS.iter().enumerate() {
        let list = |form: &dyn Fn(&str) -> String| {
            let arguments: Vec<String> = function.arguments.iter().map(|name| form(name)).collect();
            arguments.join(", ")
        };
        let or_void = |text: String| if text.is_empty() { "void".to_string() } else { text };
        let parameters = or_void(list(&|name| format!("uint64_t {name}_")));
        let types = or_void(list(&|_| "uint64_t".to_string()));
        let arguments = list(&|name| format!("{name}_"));
        out.push_str(&format!(
            "\n/* {}\n   Value: {}. */\nstatic inline sing_answer sing_{}({parameters})\n{{\n    \
             return ((sing_answer (*)({types}))sing_table()[{}])({arguments});\n}}\n",
            function.documentation.replace("*/", "* /"),
            function.value,
            function.name,
            number + 1,
        ));
    }
    out.push_str("\n#endif\n");
    out
}

/// `TimedOut` as `TIMED_OUT`.
fn shouted(name: &str) -> String {
    let mut out = String::new();
    for (index, letter) in name.char_indices() {
        if index > 0 && letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_each_function_at_its_place() {
        let text = emit_c_abi();
        assert!(text.contains("    SING_OK = 0, /* done */\n") && text.contains("SING_WOULD_BLOCK = 3"), "{text}");
        let send = FUNCTIONS.iter().position(|function| function.name == "channel_send").expect("one") + 1;
        let line = format!(
            "sing_channel_send(uint64_t endpoint_, uint64_t message_)\n{{\n    return ((sing_answer (*)(uint64_t, uint64_t))sing_table()[{send}])(endpoint_, message_);"
        );
        assert!(text.contains(&line), "{text}");
        assert!(text.contains("sing_thread_yield(void)\n"), "{text}");
        assert_eq!(text.matches("static inline sing_answer ").count(), FUNCTIONS.len());
    }
}
