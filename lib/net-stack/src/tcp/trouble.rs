//! What errors of ICMP do to connections.
//!
//! Who sees no packet of a connection can still send errors about it, and has to guess its ends. So an error is
//! believed only when it quotes a byte that is under way right now, and even then it ends no connection that stands
//! (RFC 5927): at most its packets get shorter, and why it was given up is known better in the end.

use smoltcp::socket::tcp::State;

use crate::ends::{End, Failure};
use crate::icmp::{Error, Trouble};
use crate::output::{Buffer, Output};

use super::{Connection, Tcp};

impl Connection {
    /// Whether something of that number was sent and is not acknowledged.
    fn is_under_way(&self, sequence: u32) -> bool {
        let Some(sent_to) = self.sent_to else { return false };
        let is_beginning = matches!(self.socket.state(), State::SynSent | State::SynReceived);
        let from = if is_beginning { Some(sent_to.wrapping_sub(1)) } else { self.acknowledged() };
        from.is_some_and(|from| sequence.wrapping_sub(from) < sent_to.wrapping_sub(from))
    }
}

impl Tcp {
    /// Takes an error about a segment that was sent; false: there is no such segment.
    pub(crate) fn hear_trouble<B: Buffer>(&mut self, output: &mut Output<B>, error: &Error) -> bool {
        let (own_port, port) = error.ports();
        let local = End::new(error.header.source, own_port);
        let remote = End::new(error.header.destination, port);
        let Some(slot) = self.by_ends.get(&(local, remote)).copied() else { return false };
        let id = self.id_of(slot);
        let Some(connection) = self.get_mut(id).filter(|connection| connection.is_under_way(error.sequence())) else {
            return false;
        };
        let failure = match error.trouble {
            Trouble::TooLong { mtu } => {
                // What was lost is sent again in shorter segments once its time has come.
                let is_new = output.paths.lower(remote.address, error.length, mtu, output.now_ns);
                self.mark_dirty(id);
                return is_new;
            }
            Trouble::Refused => Failure::Refused,
            Trouble::Unreachable | Trouble::Silent => Failure::Unreachable,
        };
        // On a wire that loses much a neighbour's answers may be lost three times and the next one come.
        if connection.socket.state() == State::SynSent && error.trouble != Trouble::Silent {
            // Nothing is lost by trying another address at once (RFC 5461).
            connection.failure = Some(failure);
            connection.socket.tcp().abort();
            self.mark_dirty(id);
        } else {
            connection.hint = Some(Failure::Unreachable);
        }
        true
    }
}
