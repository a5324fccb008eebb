//! The contract between `knock` and `answer`: all that these two programs share.
#![no_std]
#![forbid(unsafe_code)]

sip::contracts!("knock_answer.contract");
