//! What errors of ICMP do to connections.
//!
//! Who sees no packet of a connection can still send errors about it, and has to guess its ends. So an error is
//! believed only when it quotes a byte that is under way right now, and even then it ends no connection that stands
//! (RFC 5927): at most its packets get shorter, and why it was given up is known better in the end.

use ::tcp::{Seq, State};

use crate::ends::{End, Failure};
use crate::icmp::{Error, ErrorKind};
use crate::output::{Buffer, Output};

use super::Tcp;

impl Tcp {
    /// Takes an error about a segment that was sent; false: there is no such segment.
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
        // On a wire that loses much a neighbour's answers may be lost three times and the next one come.
        if connection.state() == State::SynSent && error.kind != ErrorKind::Silent {
            // Nothing is lost by trying another address at once (RFC 5461).
            connection.failure = Some(failure);
            connection.abort(memory);
            self.mark_dirty(id);
        } else {
            connection.hint = Some(Failure::Unreachable);
        }
        true
    }
}
