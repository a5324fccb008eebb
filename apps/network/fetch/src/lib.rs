//! Downloads from, or posts a file to, a URL over HTTP.
//!
//! Key modules: `conversation` (a request and its response), `destination` (where content goes), `failure` (errors as
//! text). HTTP is parsed by the crate `http`. Deliberately not here: https.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod conversation;
mod destination;
mod failure;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use client::access::AccessError;
use client::file_io::{OpenFile, new_block};
use client::namespace::Namespace;
use client::terminal::Terminal;
use contracts::dns::AddressFamily;
use http::url::Url;
use network::NetError;
use network::address::Target;
use sip::Deadline;
use stdio::{Output, report};

use conversation::{Answer, Conversation, Timeout};
use destination::{Destination, Progress};
use failure::Failure;

sip::startup!();

/// Default port.
const PORT: u16 = 80;

/// Fetches, and reports the amount.
pub fn main(startup: Startup) -> i32 {
    let plan = match Plan::new(&startup) {
        Ok(plan) => plan,
        Err(problem) => {
            report::error(format_args!("{problem}"));
            return 2;
        }
    };
    let mut namespace = Namespace::new(startup.namespace);
    let mut output = Output::new(startup.output);
    let mut url = match Url::parse(&startup.address) {
        Ok(url) => url,
        Err(error) => return report::path_error(&startup.address, &error),
    };
    let asked = url.to_string();
    let outcome = plan.carry_out(&mut namespace, &mut url, &mut output);
    let status = match outcome {
        Ok(()) => 0,
        // The reader has closed its end, as with `fetch ... | head`.
        Err(Failure::Output) => return 1,
        Err(failure) if asked == url.to_string() => report::path_error(&startup.address, &failure),
        Err(failure) => report::path_error(&format!("{}, from {}", url, startup.address), &failure),
    };
    output.finish_with(status)
}

/// HTTP method with its body.
#[derive(Clone, PartialEq, Eq)]
enum Request {
    Get,
    Head,
    /// The file at this path.
    Post(String),
}

/// The parsed command line.
struct Plan {
    request: Request,
    to: Option<String>,
    folder: String,
    content_type: String,
    headers: Vec<String>,
    redirects: u64,
    timeout: Timeout,
    family: AddressFamily,
    quiet: bool,
}

impl Plan {
    fn new(startup: &Startup) -> Result<Plan, String> {
        let request = match (&startup.post, startup.head) {
            (Some(_), true) => return Err("--head and --post exclude each other".into()),
            (Some(path), false) => Request::Post(path.clone()),
            (None, true) => Request::Head,
            (None, false) => Request::Get,
        };
        let redirects = startup.redirects;
        let redirects =
            u64::try_from(redirects).map_err(|_| format!("`--redirects {redirects}`: use a number from 0"))?;
        if let Some(wrong) = startup.headers.iter().find(|field| !is_field(field)) {
            return Err(format!("`--header {wrong}`: write `Name: value` on one line"));
        }
        if !is_field(&format!("a: {}", startup.content_type)) {
            return Err(format!("`--type {}`: not a content type", startup.content_type));
        }
        Ok(Plan {
            request,
            to: startup.to.clone(),
            folder: startup.working_folder.clone(),
            content_type: startup.content_type.clone(),
            headers: startup.headers.clone(),
            redirects,
            timeout: Timeout { wait: startup.wait, limit: deadline(startup.limit) },
            family: match (startup.ipv4, startup.ipv6) {
                (true, false) => AddressFamily::Version4,
                (false, true) => AddressFamily::Version6,
                _ => AddressFamily::Any,
            },
            quiet: startup.quiet,
        })
    }

    /// Sends the request and follows redirects. `url` is updated to the last one requested.
    fn carry_out(&self, namespace: &mut Namespace, url: &mut Url, output: &mut Output) -> Result<(), Failure> {
        let mut request = self.request.clone();
        let mut redirects = 0;
        let first = url.authority.clone();
        loop {
            let (mut conversation, answer) = self.ask(namespace, url, &request, &first)?;
            match self.next_url(url, &answer, redirects)? {
                Some(next) => {
                    *url = next;
                    redirects += 1;
                    // RFC 9110, section 15.4: only two of them require the content to be sent again.
                    if matches!(request, Request::Post(_)) && !matches!(answer.status, 307 | 308) {
                        request = Request::Get;
                    }
                }
                None => return self.finish(namespace, &answer, &mut conversation, &request, output),
            }
        }
    }

    /// Returns the redirect target, if it is to be followed.
    fn next_url(&self, url: &Url, answer: &Answer, redirects: u64) -> Result<Option<Url>, Failure> {
        let points_on = matches!(answer.status, 301 | 302 | 303 | 307 | 308);
        let Some(location) = answer.location.as_ref().filter(|_| points_on) else { return Ok(None) };
        if self.redirects == 0 {
            return if self.request == Request::Head { Ok(None) } else { Err(Failure::Redirect(location.clone())) };
        }
        if redirects == self.redirects {
            return Err(Failure::TooManyRedirects(redirects));
        }
        url.join(location).map(Some).map_err(|error| Failure::BadRedirect(location.clone(), error))
    }

    /// Sends one request. `named` is the host from the command line.
    fn ask(
        &self,
        namespace: &mut Namespace,
        url: &Url,
        request: &Request,
        named: &str,
    ) -> Result<(Conversation, Answer), Failure> {
        let Target { host, port } = Target::parse(&url.authority).map_err(NetError::from)?;
        let mut file = match request {
            Request::Post(path) => Some(self.file_to_send(namespace, path)?),
            Request::Get | Request::Head => None,
        };
        let addresses = network::resolve(namespace, &host, self.family)?;
        let timeout_ms = self.timeout.step_ms();
        let connected = network::connect(namespace, &addresses, port.unwrap_or(PORT), timeout_ms);
        let connection = connected.map_err(|error| self.timeout.explain(error))?;
        let mut conversation = Conversation::new(connection, self.timeout);
        conversation.send_bytes(&self.head(url, request, file.as_ref().map(|(_, size)| *size), named))?;
        let sent = match (&mut file, request) {
            (Some((file, size)), Request::Post(path)) => {
                self.send_file(namespace, &mut conversation, file, *size, path)
            }
            _ => Ok(()),
        };
        match (conversation.answer(*request == Request::Head), sent) {
            // A server may respond before it has read the whole request and then stop reading.
            (Ok(answer), Ok(())) => Ok((conversation, answer)),
            (Ok(answer), Err(_)) if answer.status >= 300 => Ok((conversation, answer)),
            (_, Err(failure)) | (Err(failure), Ok(())) => Err(failure),
        }
    }

    fn file_to_send(&self, namespace: &mut Namespace, path: &str) -> Result<(OpenFile, u64), Failure> {
        let full = path::absolute(&self.folder, path);
        let opened = namespace.open_file(&full).and_then(|mut file| {
            let size = file.attributes()?.size_bytes;
            Ok((file, size))
        });
        opened.map_err(|error| Failure::File(path.into(), error))
    }

    /// Sends as many bytes of the file as were announced.
    fn send_file(
        &self,
        namespace: &mut Namespace,
        conversation: &mut Conversation,
        file: &mut OpenFile,
        size: u64,
        path: &str,
    ) -> Result<(), Failure> {
        let mut progress = Progress::new(self.person(namespace));
        let mut sent = 0u64;
        let mut send = || -> Result<(), Failure> {
            let mut block = new_block().map_err(AccessError::from)?;
            while sent < size {
                let (filled, count) = file.read_at(block, sent)?;
                let count = count.min(usize::try_from(size - sent).unwrap_or(usize::MAX));
                if count == 0 {
                    break;
                }
                block = conversation.send(filled, count)?;
                sent += count as u64;
                progress.note(sent, Some(size));
            }
            Ok(())
        };
        let outcome = send();
        progress.clear();
        outcome.map_err(|failure| match failure {
            // The file system's errors do not carry the path.
            Failure::File(_, error) => Failure::File(path.into(), error),
            other => other,
        })?;
        if sent < size { Err(Failure::Shrunk(path.into())) } else { Ok(()) }
    }

    fn head(&self, url: &Url, request: &Request, size: Option<u64>, named: &str) -> Vec<u8> {
        let method = match request {
            Request::Get => "GET",
            Request::Head => "HEAD",
            Request::Post(_) => "POST",
        };
        let mut head = format!("{method} {} HTTP/1.1\r\n", url.target);
        // Header fields for the named host are not sent to another, regardless of redirects.
        let headers: Vec<&String> =
            self.headers.iter().filter(|field| url.authority == named || !is_for_one_host(field)).collect();
        let given = |name: &str| headers.iter().any(|field| is_named(field, name));
        for (name, value) in [
            ("Host", Some(url.authority.clone())),
            ("User-Agent", Some("fetch/0.1".into())),
            ("Accept", Some("*/*".into())),
            ("Connection", Some("close".into())),
            ("Content-Type", size.map(|_| self.content_type.clone())),
            ("Content-Length", size.map(|size| size.to_string())),
        ] {
            if let Some(value) = value.filter(|_| !given(name)) {
                head += &format!("{name}: {value}\r\n");
            }
        }
        for field in headers {
            head += field;
            head += "\r\n";
        }
        head += "\r\n";
        head.into_bytes()
    }

    /// Returns the user to show progress to.
    fn person(&self, namespace: &mut Namespace) -> Option<Terminal> {
        if self.quiet { None } else { Terminal::find(namespace) }
    }

    /// Writes the response to its destination.
    fn finish(
        &self,
        namespace: &mut Namespace,
        answer: &Answer,
        conversation: &mut Conversation,
        request: &Request,
        output: &mut Output,
    ) -> Result<(), Failure> {
        if *request == Request::Head {
            output.write(&answer.text).map_err(|_| Failure::Output)?;
        }
        if answer.status >= 400 {
            return Err(Failure::Status(answer.status, answer.reason.clone()));
        }
        if *request == Request::Head {
            return Ok(());
        }
        let Some(path) = &self.to else {
            let mut destination = Destination::Output(output);
            while let Some((block, which)) = conversation.next()? {
                destination.write(block, which)?;
            }
            return Ok(());
        };
        let mut destination = Destination::file(namespace, &self.folder, path)?;
        let mut progress = Progress::new(self.person(namespace));
        let outcome = save(conversation, &mut destination, &mut progress, answer.announced);
        let summary = progress.end(conversation.came());
        outcome?;
        if !self.quiet {
            output.write(format!("{path}: {summary}\n").as_bytes()).map_err(|_| Failure::Output)?;
        }
        Ok(())
    }
}

fn save(
    conversation: &mut Conversation,
    destination: &mut Destination<'_>,
    progress: &mut Progress,
    announced: Option<u64>,
) -> Result<(), Failure> {
    while let Some((block, which)) = conversation.next()? {
        destination.write(block, which)?;
        progress.note(conversation.came(), announced);
    }
    Ok(())
}

/// Returns the deadline after this duration; `NEVER` for zero.
fn deadline(limit: Duration) -> Deadline {
    if limit.is_zero() {
        return Deadline::NEVER;
    }
    Deadline::after_ns(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
}

/// Whether this is a header field that can be sent unchanged.
fn is_field(field: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    field.split_once(':').is_some_and(|(name, value)| {
        !name.is_empty() && name.bytes().all(is_letter) && !value.chars().any(char::is_control)
    })
}

/// Whether a header field names the host or carries credentials for it.
fn is_for_one_host(field: &str) -> bool {
    ["Host", "Authorization", "Cookie"].iter().any(|name| is_named(field, name))
}

/// Whether a header field has this name.
fn is_named(field: &str, name: &str) -> bool {
    field.split_once(':').is_some_and(|(found, _)| found.eq_ignore_ascii_case(name))
}
