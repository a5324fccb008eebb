//! What the parent of a web application gives it: the exporting end of a `WebApplication` channel, the namespace, and
//! options, each where the application's manifest has it.
//!
//! Key type: [`Places`]. A native application has its endpoints first; one that is a WebAssembly module has them behind
//! its template's. Neighbour: `userland/web-application`, the other side. Deliberately not here: when to start an
//! application, and what to do when it ends.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use contracts::{directory, web_application};
use manifest_model::{Manifest, Parameter, ParameterKind, Side, Source};
use sip::Status;
use sip::process::Child;

/// Parameter of native applications for their options.
const OPTIONS: &str = "options";

/// The end of the channel for requests that an application is given.
pub type Requests = web_application::Exp<web_application::states::Start>;
/// The root folder that an application is given.
pub type Root = directory::Imp<directory::states::Ready>;

/// Indices of endpoints and parameters in an application's manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    requests: usize,
    root: Option<usize>,
    options: Option<Options>,
}

/// The parameter that takes the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Options {
    /// One text.
    Text(usize),
    /// A value for each word: the arguments of a WASI program.
    Words(usize),
}

impl Places {
    /// Looks the installed program up; `None` if there is none of that name, or it is no web application.
    ///
    /// # Errors
    /// A manifest cannot be read, for want of memory.
    pub fn find(program: &str) -> Result<Option<Places>, Status> {
        Ok(client::programs::manifest(program)?.as_ref().and_then(Places::of))
    }

    /// The places in a manifest; `None` if it has no endpoint for requests.
    pub fn of(manifest: &Manifest) -> Option<Places> {
        let endpoint = |contract: &str, side: Side, from: &Source| {
            manifest.endpoints.iter().position(|slot| {
                let named = manifest.contracts.get(slot.contract as usize).map(|found| found.name.as_str());
                named == Some(contract) && slot.side == side && slot.source == *from
            })
        };
        Some(Places {
            requests: endpoint("WebApplication", Side::Exporter, &Source::Parent)?,
            root: endpoint("Directory", Side::Importer, &Source::Path("/".into())),
            options: options_of(&manifest.parameters),
        })
    }

    /// Whether it takes the root folder.
    pub fn wants_root(&self) -> bool {
        self.root.is_some()
    }

    /// Gives a child that was created of the program, and is not started, what it takes.
    ///
    /// # Errors
    /// The kernel refuses a part: then the child is lost with everything. `BadArgument`: there are options, and it takes
    /// none.
    pub fn give(
        &self,
        mut child: Child,
        requests: Requests,
        root: Option<Root>,
        options: &str,
    ) -> Result<Child, Status> {
        if let (Some(slot), Some(root)) = (self.root, root) {
            child = child.endpoint(slot, root)?;
        }
        child = match self.options {
            _ if options.is_empty() => child,
            Some(Options::Text(index)) => child.parameter(index, options)?,
            Some(Options::Words(index)) => {
                let mut words = options.split_ascii_whitespace();
                words.try_fold(child, |child, word| child.repeated_parameter(index, word))?
            }
            None => return Err(Status::BadArgument),
        };
        child.endpoint(self.requests, requests)
    }
}

fn options_of(parameters: &[Parameter]) -> Option<Options> {
    let find = |fits: &dyn Fn(&Parameter) -> bool| {
        parameters.iter().position(|parameter| parameter.kind == ParameterKind::Text && fits(parameter))
    };
    let text = find(&|parameter| parameter.name == OPTIONS && !parameter.repeated);
    let words = || find(&|parameter| parameter.position.is_some() && parameter.repeated);
    text.map(Options::Text).or_else(|| words().map(Options::Words))
}
