//! The host's errors as the contracts name them.

use contracts::dns::DnsError;
use contracts::ip_configuration::IpError;
use contracts::tcp::TcpError;
use sip::device::sockets::Failure;

/// For a connection, a listener or datagrams.
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

/// For a name.
pub fn dns_error(failure: Failure) -> DnsError {
    match failure {
        Failure::NotFound => DnsError::NotFound,
        Failure::BadAddress | Failure::BadCommand | Failure::TooLong => DnsError::BadName,
        Failure::TimedOut => DnsError::TimedOut,
        Failure::Exhausted | Failure::TooManySockets => DnsError::Exhausted,
        _ => DnsError::ServerFailed,
    }
}

/// For questions about the network.
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
