//! The assertions of a manifest about an image.
//!
//! What is assumed: functions are called by what their callers' code shows, by tables of methods in constant data, and
//! by addresses that code takes. A panic ends the program, so what happens in one counts for `no-panic` only.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use manifest_model::{Assertions, WHOLE_PROGRAM};

use crate::calls::Target;
use crate::program::Program;
use crate::stack::{Follow, Graph, Unbounded};

/// An assertion that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The assertion, why it does not hold, and by which calls.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

/// What was found of the assertions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assessment {
    /// Those that hold.
    pub proved: Vec<String>,
    /// Those that do not.
    pub faults: Vec<Fault>,
}

/// Assesses the assertions of a program.
pub fn assess(program: &Program, assertions: &Assertions) -> Assessment {
    let mut judge = Judge { graph: Graph::of(program), assessment: Assessment::default() };
    for (function, most) in &assertions.max_stack {
        judge.max_stack(function, *most);
    }
    let kinds =
        [(Kind::Panic, &assertions.no_panic), (Kind::Alloc, &assertions.no_alloc), (Kind::Float, &assertions.no_float)];
    for (kind, functions) in kinds {
        functions.iter().for_each(|function| judge.never(kind, function));
    }
    if let Some(most) = assertions.functions_reached {
        judge.functions_reached(most);
    }
    judge.assessment
}

/// What functions must never do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Panic,
    Alloc,
    Float,
}

impl Kind {
    fn key(self) -> &'static str {
        match self {
            Kind::Panic => "no-panic",
            Kind::Alloc => "no-alloc",
            Kind::Float => "no-float",
        }
    }

    fn deed(self) -> &'static str {
        match self {
            Kind::Panic => "can panic",
            Kind::Alloc => "can allocate",
            Kind::Float => "can compute with floating-point numbers",
        }
    }

    fn not_done(self) -> &'static str {
        match self {
            Kind::Panic => "cannot panic",
            Kind::Alloc => "does not allocate",
            Kind::Float => "does not compute with floating-point numbers",
        }
    }
}

struct Judge<'p> {
    graph: Graph<'p>,
    assessment: Assessment,
}

impl Judge<'_> {
    fn program(&self) -> &Program {
        self.graph.program
    }

    fn fault(&mut self, what: String, remedy: &str) {
        self.assessment.faults.push(Fault { what, remedy: remedy.to_string() });
    }

    /// Returns the functions of a name; a fault if there is none, so that no assertion is about nothing.
    fn functions(&mut self, key: &str, name: &str) -> Vec<usize> {
        if name == WHOLE_PROGRAM {
            return self.graph.roots.clone();
        }
        let functions = self.program().named(name);
        if functions.is_empty() {
            let what = format!("`{key}` names `{name}`, and the image has no such function{}", self.similar(name));
            let remedy = "correct the name; a function that the compiler has inlined needs `#[inline(never)]`";
            self.fault(what, remedy);
        }
        functions
    }

    /// Functions with the same last name.
    fn similar(&self, name: &str) -> String {
        let last = name.rsplit("::").next().unwrap_or(name);
        let is_similar = |other: &&str| other.rsplit("::").next() == Some(last);
        let names = self.program().functions.iter().map(|function| function.name.as_str());
        let similar: Vec<String> = names.filter(is_similar).take(3).map(|name| format!("`{name}`")).collect();
        if similar.is_empty() { String::new() } else { format!("; it has {}", similar.join(", ")) }
    }

    fn subject(name: &str) -> String {
        if name == WHOLE_PROGRAM { String::from("the program") } else { format!("`{name}`") }
    }

    fn way(&self, way: &[usize]) -> String {
        let names: Vec<String> = way.iter().map(|&function| format!("`{}`", self.program().name(function))).collect();
        names.join(" calls ")
    }

    fn max_stack(&mut self, name: &str, most: u32) {
        let functions = self.functions("max-stack", name);
        if functions.is_empty() {
            return;
        }
        let subject = Judge::subject(name);
        match self.graph.deepest(&functions) {
            Ok((bytes, _)) if bytes <= u64::from(most) => {
                self.assessment.proved.push(format!("{subject} uses at most {bytes} bytes of stack, of {most}"));
            }
            Ok((bytes, way)) => {
                let what = format!(
                    "{subject} uses up to {bytes} bytes of stack, and `max-stack` is {most}: {}",
                    self.way(&way)
                );
                self.fault(what, "use less stack on this way, or raise the limit");
            }
            Err(Unbounded::Recursion(circle)) => {
                let what =
                    format!("{subject} has no bound of its stack, and `max-stack` is {most}: {}", self.way(&circle));
                self.fault(what, "take the recursion out, or assert `max-stack-of` functions outside it");
            }
            Err(Unbounded::Dynamic(function)) => {
                let name = self.program().name(function);
                let what = format!(
                    "{subject} has no bound of its stack, and `max-stack` is {most}: the frame of `{name}` depends on the run"
                );
                self.fault(what, "assert `max-stack-of` functions that do not call it");
            }
        }
    }

    fn never(&mut self, kind: Kind, name: &str) {
        let functions = self.functions(kind.key(), name);
        if functions.is_empty() {
            return;
        }
        let follow = if kind == Kind::Panic { Follow::All } else { Follow::Returning };
        let way = self.graph.way(&functions, follow, |function| self.does(kind, function));
        let subject = Judge::subject(name);
        match way {
            None => self.assessment.proved.push(format!("{subject} {}", kind.not_done())),
            Some(way) => {
                let by_itself = match way.last().and_then(|&last| self.program().functions.get(last)) {
                    Some(last) if kind == Kind::Panic && last.traps.is_some() => ", which ends the program (`ud2`)",
                    _ => "",
                };
                let way = self.way(&way);
                let what =
                    format!("{subject} {}, and `{}` says that it does not: {way}{by_itself}", kind.deed(), kind.key());
                self.fault(what, "change the code on this way, or take the assertion out");
            }
        }
    }

    /// Returns whether a function does it by itself.
    fn does(&self, kind: Kind, function: usize) -> bool {
        let Some(function) = self.program().functions.get(function) else { return false };
        let asks = |name: &str| {
            function.calls.iter().any(|call| match call.target {
                Target::Kernel(index) => abi::FUNCTIONS.get(index).is_some_and(|one| one.name == name),
                _ => false,
            })
        };
        let name = function.name.as_str();
        match kind {
            Kind::Panic => function.traps.is_some() || name.starts_with("core::panicking::") || asks("process_panic"),
            Kind::Alloc => is_allocator(name) || asks("memory_allocate"),
            Kind::Float => function.float.is_some(),
        }
    }

    fn functions_reached(&mut self, most: u32) {
        let reached = self.graph.reached(&self.graph.roots);
        let functions = reached.iter().filter(|reached| **reached).count();
        if functions <= most as usize {
            self.assessment.proved.push(format!("{functions} functions can be called, of at most {most}"));
            return;
        }
        let what = format!("{functions} functions can be called, and `functions-reached` is {most}");
        self.fault(what, "use less code, or raise the limit");
    }
}

/// Allocating functions of the runtime, and those that the compiler puts before them.
fn is_allocator(name: &str) -> bool {
    let last = name.rsplit("::").next().unwrap_or(name);
    let of_runtime =
        name.starts_with("sip::allocator::SipAllocator") && matches!(last, "alloc" | "alloc_zeroed" | "realloc");
    of_runtime || matches!(last, "__rust_alloc" | "__rust_alloc_zeroed" | "__rust_realloc")
}
