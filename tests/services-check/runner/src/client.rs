//! A client of providers, and providers as children.

use alloc::format;
use alloc::string::{String, ToString};

use client::access::AccessError;
use client::namespace::{Namespace, block};
use contracts::directory::{NameError, ProviderScope};
use contracts::service_provider;
use knock_answer_contract::knock_answer::{self, ImpReadyAfterKnock, ImpStart, states};
use sip::process::{Child, StopReason, create};
use sip::{Deadline, Status};

/// Timeout for anything that must not hang.
pub(crate) const TIMEOUT_MS: u64 = 10_000;

/// A connected endpoint.
pub(crate) type Knocker = knock_answer::Imp<states::Ready>;

/// Connects to the provider at a path, without retries.
pub(crate) fn connect(namespace: &mut Namespace, path: &str) -> Result<Knocker, AccessError> {
    let (importer, exporter) = knock_answer::new_channel()?;
    namespace.bind(path, exporter)?;
    opened(importer)
}

/// Connects, and waits for a provider that is being restarted.
pub(crate) fn reconnect(namespace: &mut Namespace, path: &str) -> Result<Knocker, String> {
    namespace.open(path, knock_answer::new_channel, opened).map_err(|error| format!("{path}: {error}"))
}

/// Receives the provider's first message.
pub(crate) fn opened(importer: knock_answer::Imp<states::Start>) -> Result<Knocker, AccessError> {
    match importer.receive_by(Deadline::after_ms(TIMEOUT_MS)) {
        Ok(ImpStart::Success { next }) => Ok(next),
        Ok(ImpStart::ChannelClosed(_)) => Err(AccessError::ServerEnded),
        Err(_) => Err(AccessError::System(Status::TimedOut)),
    }
}

/// The reply to a knock, and the endpoint in its next state.
pub(crate) fn knock(knocker: Knocker, number: u32, text: &str) -> Result<(String, Knocker), AccessError> {
    match knocker.knock(number, block(text)?).receive_by(Deadline::after_ms(TIMEOUT_MS)) {
        Ok(ImpReadyAfterKnock::Answer { number: same, text, next }) if same == number => Ok((text.to_text(), next)),
        Ok(ImpReadyAfterKnock::Answer { .. }) => Err(AccessError::System(Status::WrongState)),
        Ok(ImpReadyAfterKnock::ChannelClosed(_)) => Err(AccessError::ServerEnded),
        Err(_) => Err(AccessError::System(Status::TimedOut)),
    }
}

/// Returns the rest of this path as seen by the provider.
pub(crate) fn rest_of(namespace: &mut Namespace, path: &str) -> Result<String, String> {
    let answer = connect(namespace, path).and_then(|knocker| knock(knocker, 1, "where"));
    answer.map(|(rest, _)| rest).map_err(|error| format!("{path}: {error}"))
}

/// Checks that a bind is refused with this error.
pub(crate) fn refused(namespace: &mut Namespace, path: &str, expected: NameError) -> Result<(), String> {
    match connect(namespace, path) {
        Ok(_) => Err(format!("{path} could be bound, not {expected:?}")),
        Err(error) => same(path, Err(error), expected),
    }
}

/// Checks that a request failed with this error.
pub(crate) fn same(what: &str, result: Result<(), AccessError>, expected: NameError) -> Result<(), String> {
    match result {
        Err(AccessError::Name(error)) if error == expected => Ok(()),
        other => Err(format!("{what}: {other:?} and not {expected:?}")),
    }
}

/// A provider that runs as a child, with a name in the namespace.
pub(crate) struct Provider {
    child: Child,
}

impl Provider {
    /// Starts one that performs `act`, and registers it.
    pub(crate) fn start(
        namespace: &mut Namespace,
        act: &str,
        path: &str,
        scope: ProviderScope,
    ) -> Result<Provider, String> {
        let (provider, ready) = Provider::unregistered(act, None)?;
        namespace.register(path, scope, ready).map_err(|error| format!("{path}: {error}"))?;
        Ok(provider)
    }

    /// Starts one, and returns the endpoint to register. `held` is an endpoint that it keeps.
    pub(crate) fn unregistered(
        act: &str,
        held: Option<Knocker>,
    ) -> Result<(Provider, service_provider::Imp<service_provider::states::Ready>), String> {
        let say = |status: Status| format!("a provider cannot be started: {}", status.text());
        let (importer, exporter) = service_provider::new_channel().map_err(say)?;
        let child = create("check-always").map_err(|error| error.to_string())?;
        let mut child = child.parameter(0, act).and_then(|child| child.endpoint(0, exporter)).map_err(say)?;
        if let Some(held) = held {
            child = child.endpoint(1, held).map_err(say)?;
        }
        let child = child.start().map_err(say)?;
        match importer.receive_by(Deadline::after_ms(TIMEOUT_MS)) {
            Ok(service_provider::ImpStart::Ready { next }) => Ok((Provider { child }, next)),
            _ => Err(String::from("a provider did not say that it is ready")),
        }
    }

    /// Kills it, and waits until it has ended.
    pub(crate) fn kill(self) -> Result<(), String> {
        let say = |status: Status| format!("a provider cannot be ended: {}", status.text());
        self.child.stop(StopReason::Requested).map_err(say)?;
        self.ended()
    }

    /// Waits until it has ended.
    pub(crate) fn ended(self) -> Result<(), String> {
        let end = self.child.wait_until(Deadline::after_ms(TIMEOUT_MS));
        end.map(drop).map_err(|status| format!("a provider has not ended: {}", status.text()))
    }
}
