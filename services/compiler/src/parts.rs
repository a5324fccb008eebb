//! The parts of a module, compiled by some threads: each takes the next one, and which thread compiled what leaves no
//! trace in the result.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use sip::exheap::ExVec;
use sip::sync::Mutex;
use sip::thread;
use wasm_record::Imports;
use wasm_translate::{Bounds, Compilation, Error, Part, Translated};

use crate::extension::Extension;

/// What the threads share.
struct Work {
    module: Vec<u8>,
    imports: Imports,
    bounds: Bounds,
    extension: Extension,
    /// The next part that nobody has taken.
    next: AtomicUsize,
    /// Whether a part failed, so that no other has to be compiled.
    is_over: AtomicBool,
    done: Mutex<Vec<(usize, Result<Part, Error>)>>,
}

/// Compiles a module.
///
/// # Errors
/// Why it is refused, which is about the first part that fails, or why the extension is.
pub fn translate(
    module: ExVec<u8>,
    imports: &Imports,
    bounds: Bounds,
    threads: usize,
    extension: &Extension,
) -> Result<Translated, String> {
    let work = Arc::new(Work {
        module: module.to_vec(),
        imports: imports.clone(),
        bounds,
        extension: extension.clone(),
        next: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        done: Mutex::new(Vec::new()),
    });
    drop(module);
    let compilation = work.begin()?;
    let others: Vec<_> = (1..threads).map(|_| beside(&work)).collect();
    let compilation = work.all(compilation);
    for other in others.into_iter().flatten() {
        // A thread whose result is missing has left a part behind, which is noticed below.
        let _ = other.join();
    }
    extension.finish()?;
    let mut done = core::mem::take(&mut *work.done.lock());
    done.sort_unstable_by_key(|(number, _)| *number);
    let is_whole = done.len() == compilation.parts();
    let parts = done.into_iter().map(|(_, part)| part).collect::<Result<Vec<Part>, Error>>();
    let parts = parts.map_err(|error| error.to_string())?;
    if !is_whole {
        return Err("a thread ended before its function was compiled".into());
    }
    compilation.finish(parts).map_err(|error| error.to_string())
}

/// Starts a thread that helps; without one the others do its work.
fn beside(work: &Arc<Work>) -> Option<thread::JoinHandle<()>> {
    let work = Arc::clone(work);
    let helping = move || {
        // The first thread has read the same module.
        if let Ok(compilation) = work.begin() {
            work.all(compilation);
        }
    };
    thread::spawn(helping).ok()
}

impl Work {
    fn begin(&self) -> Result<Compilation<'_>, String> {
        Compilation::new(&self.module, &self.imports, self.bounds).map_err(|error| error.to_string())
    }

    /// Compiles parts until none is left.
    fn all<'a>(&self, mut compilation: Compilation<'a>) -> Compilation<'a> {
        while !self.is_over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= compilation.parts() {
                break;
            }
            let part = self.extension.in_turn(|| compilation.compile(number));
            if part.is_err() || self.extension.has_failed() {
                self.is_over.store(true, Ordering::Relaxed);
            }
            self.done.lock().push((number, part));
        }
        compilation
    }
}
