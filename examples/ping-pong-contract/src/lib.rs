//! The contract between `ping` and `pong`: all that these two programs share.
#![no_std]
#![forbid(unsafe_code)]

sip::contracts!("ping_pong.contract");
