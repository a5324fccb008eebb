//! Maps the host's errors to those of the contracts.

use contracts::dns::DnsError;
use contracts::ip_configuration::IpError;
use contracts::tcp::TcpError;
use sip::device::sockets::Failure;

/// Maps an error of a connection, listener or datagram socket.
pub fn tcp_error(failure: Failure) -> TcpError {
    match failure {
        Failure::NotPermitted => TcpError::NotPermitted,
        Failure::BadAddress | Failure::TooLong => TcpError::BadAddress,
        Failure::AddressInUse => TcpError::AddressInUse,
        Failure::ConnectionRefused => TcpError::ConnectionRefused,
        Failure::Reset => TcpError::Reset,
        Failure::TimedOut => TcpError::TimedOut,
        Failure::Unreachable => TcpError::Unreachable,
        Failure::Closed => TcpError::Closed,
        Failure::Exhausted | Failure::TooManySockets => TcpError::Exhausted,
        Failure::WouldBlock
        | Failure::NotFound
        | Failure::ServerFailed
        | Failure::NotSupported
        | Failure::BadToken
        | Failure::BadCommand
        | Failure::Other => TcpError::DeviceError,
    }
}

/// Maps an error of a name lookup.
pub fn dns_error(failure: Failure) -> DnsError {
    match failure {
        Failure::NotFound => DnsError::NotFound,
        Failure::BadAddress | Failure::BadCommand | Failure::TooLong => DnsError::BadName,
        Failure::TimedOut => DnsError::TimedOut,
        Failure::Exhausted | Failure::TooManySockets => DnsError::Exhausted,
        _ => DnsError::ServerFailed,
    }
}

/// Maps an error of a configuration query.
pub fn ip_error(failure: Failure) -> IpError {
    match failure {
        Failure::NotPermitted => IpError::NotPermitted,
        Failure::NotFound => IpError::NotFound,
        Failure::BadAddress | Failure::TooLong => IpError::BadAddress,
        Failure::Unreachable | Failure::ConnectionRefused => IpError::Unreachable,
        Failure::TimedOut => IpError::TimedOut,
        Failure::Exhausted | Failure::TooManySockets => IpError::Exhausted,
        _ => IpError::NotSupported,
    }
}
