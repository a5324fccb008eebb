//! The system's protocols: a module for each `.contract` file of this folder, and what many programs do over
//! them.
//!
//! Hand-written modules: [`namespace`] (find and open), [`file_io`], [`pipe_io`] (standard input and output),
//! [`directory_page`] (pages of names), [`path`], [`text`] (numbers and tables for people), [`report`] (errors),
//! [`access`], [`answer`] (how long an answer is waited for), [`programs`], [`random`]; for programs that work on files: [`feed`] (files or standard input, block by
//! block), [`file_writer`], [`trail`] and [`walk`] (through trees), [`copying`], [`removing`], [`volume`] (which
//! volume), [`volume_managers`], [`amount`]; for networks: [`net_address`] (addresses as text), [`net`] (connections and names), [`ip_client`]
//! (configuration), [`waiting`] for who serves them, [`packets`] and [`bus_range`] for drivers. Deliberately not here: anything that only one program does.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

sip::contracts!(
    "console.contract",
    "console_events.contract",
    "device_bus.contract",
    "directory.contract",
    "disk.contract",
    "disk_events.contract",
    "dns.contract",
    "entropy.contract",
    "file.contract",
    "file_system.contract",
    "http_exchange.contract",
    "installer.contract",
    "ip_configuration.contract",
    "namespace_events.contract",
    "nic_device.contract",
    "nic_events.contract",
    "partition_manager.contract",
    "pipe.contract",
    "real_time_clock.contract",
    "service_events.contract",
    "service_manager.contract",
    "service_provider.contract",
    "tcp.contract",
    "tcp_connection.contract",
    "tcp_listener.contract",
    "tcp_writer.contract",
    "udp.contract",
    "udp_socket.contract",
    "volume_manager.contract",
    "web_application.contract"
);

pub mod access;
pub mod amount;
pub mod answer;
pub mod bus_range;
pub mod copying;
pub mod directory_page;
pub mod feed;
pub mod file_io;
pub mod file_writer;
pub mod installer_client;
pub mod ip_client;
pub mod kind_text;
pub mod namespace;
pub mod net;
pub mod net_address;
pub mod packets;
pub mod path;
pub mod person;
pub mod pipe_io;
pub mod processes;
pub mod programs;
pub mod provider;
pub mod random;
pub mod removing;
pub mod report;
pub mod services;
pub mod text;
pub mod trail;
pub mod volume;
pub mod volume_managers;
pub mod waiting;
pub mod walk;
