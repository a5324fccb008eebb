//! Providers and their clients: remaining paths, and the deaths of either.

use alloc::string::ToString;
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::{Namespace, block};
use contracts::directory::{ImpReadyAfterBind, NameError, ProviderScope};
use contracts::file;
use knock_answer_contract::knock_answer;
use sip::{Deadline, Status};

use crate::client::{Provider, TIMEOUT_MS, connect, knock, opened, refused, rest_of, same};
use crate::names::said;
use crate::{Outcome, Test, check};

const MANY_CLIENTS: usize = 3000;

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("directory: a name is registered, bound and taken out", register_and_bind),
    ("directory: the longest prefix and the rest of the path", prefixes),
    ("directory: another contract is refused", wrong_contract),
    ("directory: a dead provider is unavailable until it is registered again", death),
    ("directory: thousands of clients", many_clients),
    ("directory: a client that dies takes nobody with it", client_death),
    ("directory: a provider that is ended while a client is on its way", death_while_binding),
    ("directory: a provider that dies of a client", death_of_a_client),
    ("directory: a client that gives up while it is on its way", client_gives_up),
    ("directory: a slow provider holds up nobody else", slow_provider),
];

fn register_and_bind(namespace: &mut Namespace) -> Outcome {
    let provider = Provider::start(namespace, "serve", "/check/one", ProviderScope::Name)?;
    let knocker = connect(namespace, "/check/one").map_err(said)?;
    let (answer, knocker) = knock(knocker, 7, "hello").map_err(said)?;
    check!(answer == "hello", "the answer is `{answer}`");
    refused(namespace, "/check/one/below", NameError::NotADirectory)?;
    namespace.deregister("/check/one").map_err(said)?;
    refused(namespace, "/check/one", NameError::NotFound)?;
    // Existing clients would continue, but this provider ends with its registration.
    provider.ended()?;
    let ended = knock(knocker, 8, "hello").map(drop);
    check!(ended == Err(AccessError::ServerEnded), "{ended:?} after the end");
    Ok(())
}

fn prefixes(namespace: &mut Namespace) -> Outcome {
    let outer = Provider::start(namespace, "serve", "/check/s/outer", ProviderScope::Subtree)?;
    let other = Provider::start(namespace, "serve", "/check/s/outer-more", ProviderScope::Subtree)?;
    let paths = [
        ("/check/s/outer", ""),
        ("/check/s/outer/", ""),
        ("check//s/outer/a/b", "a/b"),
        ("/check/./s/outer/a", "a"),
        ("/check/s/outer-more/outer", "outer"),
    ];
    for (path, expected) in paths {
        let rest = rest_of(namespace, path)?;
        check!(rest == expected, "{path}: the provider sees `{rest}`, not `{expected}`");
    }
    let (inner, ready) = Provider::unregistered("serve", None)?;
    let inside = namespace.register("/check/s/outer/inner", ProviderScope::Name, ready);
    same("inside of a subtree", inside, NameError::NotSupported)?;
    inner.ended()?;
    for path in ["/check/s/outer", "/check/s/outer-more", "/check/s"] {
        namespace.deregister(path).map_err(said)?;
    }
    outer.ended()?;
    other.ended()
}

fn wrong_contract(namespace: &mut Namespace) -> Outcome {
    let provider = Provider::start(namespace, "serve", "/check/w", ProviderScope::Name)?;
    let (importer, exporter) = file::new_channel().map_err(|status| status.text().to_string())?;
    same("a file", namespace.bind("/check/w", exporter), NameError::WrongContract)?;
    drop(importer);
    drop(connect(namespace, "/check/w").map_err(said)?);
    namespace.deregister("/check/w").map_err(said)?;
    provider.ended()
}

fn death(namespace: &mut Namespace) -> Outcome {
    let first = Provider::start(namespace, "serve", "/check/d", ProviderScope::Name)?;
    let knocker = connect(namespace, "/check/d").map_err(said)?;
    first.kill()?;
    let answer = knock(knocker, 1, "hello").map(drop);
    check!(answer == Err(AccessError::ServerEnded), "a client of the dead: {answer:?}");
    for _ in 0..3 {
        refused(namespace, "/check/d", NameError::Unavailable)?;
    }
    let second = Provider::start(namespace, "serve", "/check/d", ProviderScope::Name)?;
    let knocker = connect(namespace, "/check/d").map_err(said)?;
    drop(knock(knocker, 2, "hello").map_err(said)?);
    // Re-registered while the predecessor lives: that is released.
    let third = Provider::start(namespace, "serve", "/check/d", ProviderScope::Subtree)?;
    second.ended()?;
    check!(rest_of(namespace, "/check/d/x")? == "x", "not the new scope");
    namespace.deregister("/check/d").map_err(said)?;
    third.ended()
}

fn many_clients(namespace: &mut Namespace) -> Outcome {
    let provider = Provider::start(namespace, "serve", "/check/c", ProviderScope::Name)?;
    let mut clients = Vec::new();
    for _ in 0..MANY_CLIENTS {
        clients.push(connect(namespace, "/check/c").map_err(said)?);
    }
    let mut views = Vec::new();
    for _ in 0..MANY_CLIENTS {
        views.push(namespace.open_directory("/check").map_err(said)?);
    }
    let mut answered = Vec::new();
    for (number, knocker) in clients.into_iter().enumerate() {
        let (answer, knocker) = knock(knocker, number as u32, "hello").map_err(said)?;
        check!(answer == "hello", "client {number}: `{answer}`");
        answered.push(knocker);
    }
    for view in &mut views {
        view.own_attributes("c").map_err(said)?;
    }
    drop((views, answered));
    namespace.deregister("/check/c").map_err(said)?;
    provider.ended()
}

fn client_death(namespace: &mut Namespace) -> Outcome {
    let provider = Provider::start(namespace, "serve", "/check/v", ProviderScope::Name)?;
    for _ in 0..20 {
        let held = connect(namespace, "/check/v").map_err(said)?;
        let (client, _ready) = Provider::unregistered("serve", Some(held))?;
        let mine = connect(namespace, "/check/v").map_err(said)?;
        client.kill()?;
        drop(knock(mine, 3, "still here").map_err(said)?);
    }
    namespace.deregister("/check/v").map_err(said)?;
    provider.ended()
}

type Binding = contracts::directory::Imp<contracts::directory::states::ReadyAfterBind>;

/// Starts to bind a new channel to a path.
fn begin(
    namespace: &mut Namespace,
    path: &str,
) -> Result<(Binding, knock_answer::Imp<knock_answer::states::Start>), alloc::string::String> {
    let text = |status: Status| status.text().to_string();
    let view = namespace.open_directory("").map_err(said)?.into_endpoint().ok_or("no endpoint")?;
    let (importer, exporter) = knock_answer::new_channel().map_err(text)?;
    Ok((view.bind(block(path).map_err(text)?, exporter), importer))
}

/// The endpoint of a pending bind was lost with its provider, and both ends report it.
fn went_down(binding: Binding, importer: knock_answer::Imp<knock_answer::states::Start>) -> Outcome {
    match binding.receive_by(Deadline::after_ms(TIMEOUT_MS)) {
        Ok(ImpReadyAfterBind::Failed { error: NameError::Unavailable, .. }) => {}
        Ok(ImpReadyAfterBind::Bound { .. }) => return Err("it was bound to the dead".to_string()),
        Ok(_) => return Err("the bind ended otherwise than with Unavailable".to_string()),
        Err(_) => return Err("the bind hangs".to_string()),
    }
    let end = opened(importer).map(drop);
    check!(end == Err(AccessError::ServerEnded), "the client's end: {end:?}");
    Ok(())
}

fn death_while_binding(namespace: &mut Namespace) -> Outcome {
    let provider = Provider::start(namespace, "hold-client", "/check/h", ProviderScope::Name)?;
    let (binding, importer) = begin(namespace, "/check/h")?;
    // These are queued, and survive it.
    let (second, second_importer) = begin(namespace, "/check/h")?;
    let (third, third_importer) = begin(namespace, "/check/h")?;
    sip::thread::sleep(Deadline::after_ms(20));
    provider.kill()?;
    went_down(binding, importer)?;
    for (waiting, importer) in [(second, second_importer), (third, third_importer)] {
        match waiting.receive_by(Deadline::after_ms(TIMEOUT_MS)) {
            Ok(ImpReadyAfterBind::NotBound { error: NameError::Unavailable, .. }) => drop(importer),
            Ok(_) => return Err("one that waited was not told Unavailable".to_string()),
            Err(_) => return Err("one that waited hangs".to_string()),
        }
    }
    namespace.deregister("/check/h").map_err(said)
}

fn death_of_a_client(namespace: &mut Namespace) -> Outcome {
    for _ in 0..10 {
        let provider = Provider::start(namespace, "die-with-client", "/check/x", ProviderScope::Name)?;
        let (binding, importer) = begin(namespace, "/check/x")?;
        went_down(binding, importer)?;
        provider.ended()?;
    }
    namespace.deregister("/check/x").map_err(said)
}

fn client_gives_up(namespace: &mut Namespace) -> Outcome {
    let provider = Provider::start(namespace, "hold-client", "/check/g", ProviderScope::Name)?;
    for _ in 0..10 {
        drop(begin(namespace, "/check/g")?);
    }
    provider.kill()?;
    refused(namespace, "/check/g", NameError::Unavailable)?;
    namespace.deregister("/check/g").map_err(said)
}

fn slow_provider(namespace: &mut Namespace) -> Outcome {
    let slow = Provider::start(namespace, "hold-client", "/check/slow", ProviderScope::Name)?;
    let quick = Provider::start(namespace, "serve", "/check/quick", ProviderScope::Name)?;
    let waiting = begin(namespace, "/check/slow")?;
    drop(connect(namespace, "/check/quick").map_err(said)?);
    // Deregistered during a bind: the client is notified only when the provider ends.
    namespace.deregister("/check/slow").map_err(said)?;
    namespace.deregister("/check/quick").map_err(said)?;
    slow.kill()?;
    went_down(waiting.0, waiting.1)?;
    quick.ended()
}
