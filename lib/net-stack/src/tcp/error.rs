//! Effect of ICMP errors on connections.
//!
//! An off-path attacker can send errors too, guessing the ends of a connection. So an error is believed only if it
//! quotes a sequence number currently in flight, and even then it never aborts an established connection (RFC 5927):
//! at most it lowers the path MTU, and supplies the reason once the connection times out.

use ::tcp::{Seq, State};

use crate::ends::{End, Failure};
use crate::icmp::{Error, ErrorKind};
use crate::output::{Buffer, Output};

use super::Tcp;

impl Tcp {
    /// Processes an error about a segment that was sent; returns `false` if there is no such segment.
    pub(crate) fn receive_error<B: Buffer>(&mut self, output: &mut Output<B>, error: &Error) -> bool {
        let (own_port, port) = error.ports();
        let local = End::new(error.header.source, own_port);
        let remote = End::new(error.header.destination, port);
        let Some(slot) = self.by_ends.get(&(local, remote)).copied() else { return false };
        let id = self.id_of(slot);
        let (memory, slots) = (&mut self.memory, &mut self.slots);
        let is_meant = |connection: &&mut super::Connection| connection.machine.is_in_flight(Seq(error.sequence()));
        let Some(connection) = super::find(slots, id).filter(is_meant) else { return false };
        let failure = match error.kind {
            ErrorKind::TooLong { mtu } => {
                let is_new = output.paths.lower(remote.address, error.length, mtu, output.now_ns);
                if is_new {
                    connection.machine.path_narrowed();
                }
                self.mark_dirty(id);
                return is_new;
            }
            ErrorKind::Refused => Failure::Refused,
            ErrorKind::Unreachable | ErrorKind::Silent => Failure::Unreachable,
        };
        // On a lossy link three replies of a neighbour may be lost and the next one arrive.
        if connection.state() == State::SynSent && error.kind != ErrorKind::Silent {
            // Trying another address right away loses nothing (RFC 5461).
            connection.failure = Some(failure);
            connection.abort(memory);
            self.mark_dirty(id);
        } else {
            connection.hint = Some(Failure::Unreachable);
        }
        true
    }
}
