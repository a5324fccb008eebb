//! The table of attempts. A program has one line for each attempt number.

use sip::process::EpitaphKind;

use crate::attempt::{Attempt, Given};

const BUFFER: &[&str] = &["the message buffer was used for something else"];
const OVERFLOW: EpitaphKind = EpitaphKind::StackOverflow;

/// All attempts, by program.
pub(crate) const ALL: &[Attempt] = &[
    Attempt::repelled("hostile-child-bomb", 0, "more children than its manifest allows"),
    Attempt::repelled("hostile-child-bomb", 104, "four generations of children that it gives up"),
    Attempt::repelled("hostile-child-bomb", 106, "six generations of children that it gives up").of_each_size(),
    Attempt::repelled("hostile-child-bomb", 203, "children that are started again as they end").stopped_after(500),
    Attempt::repelled("hostile-closing-peers", 0, "a channel is closed in a wait for two"),
    Attempt::repelled("hostile-closing-peers", 1, "channels are closed in a wait set"),
    Attempt::repelled("hostile-closing-peers", 2, "a channel is closed with a loan under way"),
    Attempt::repelled("hostile-closing-peers", 3, "both ends are closed at once"),
    Attempt::repelled("hostile-endless-allocation", 0, "vectors until there is no room")
        .ends(EpitaphKind::Panicked, &["memory allocation"]),
    Attempt::repelled("hostile-endless-allocation", 1, "vectors of absurd sizes"),
    Attempt::repelled("hostile-endless-allocation", 2, "blocks of absurd sizes"),
    Attempt::repelled("hostile-endless-allocation", 3, "blocks until there is no room"),
    Attempt::repelled("hostile-endless-allocation", 4, "a chain of 30,000 blocks"),
    Attempt::repelled("hostile-flood", 0, "long lines of debug output"),
    Attempt::repelled("hostile-flood", 1, "line ends without end"),
    Attempt::repelled("hostile-flood", 2, "long lines of four threads"),
    Attempt::repelled("hostile-forged-blocks", 0, "a long text where a message lies").given(Given::Victim),
    Attempt::repelled("hostile-forged-blocks", 1, "handles of a wait where a message lies").given(Given::Victim),
    Attempt::repelled("hostile-forged-blocks", 2, "words of its own where a block comes home").given(Given::Victim),
    Attempt::repelled("hostile-forged-blocks", 3, "numbers of a message read as a block")
        .given(Given::Victim)
        .ends(EpitaphKind::Panicked, &["not possible in this state"]),
    Attempt::repelled("hostile-forged-blocks", 4, "a loan that is split, attached to and attached")
        .given(Given::Victim),
    Attempt::repelled("hostile-forged-blocks", 5, "words of its own in the answer to a dying process")
        .given(Given::Victim),
    Attempt::repelled("hostile-forged-lines", 0, "debug output with the lines of others in it"),
    Attempt::repelled("hostile-forged-lines", 1, "lines of others where a long text is cut"),
    Attempt::repelled("hostile-forged-lines", 2, "epitaphs of others in its own")
        .ends(EpitaphKind::Panicked, &["forged\\n7 hostile-victim", "\\r\\x1b[2K", "\\u{2028}"]),
    Attempt::repelled("hostile-forged-lines", 3, "roles that are more than a role"),
    Attempt::repelled("hostile-handle-exhaustion", 0, "no handle is left"),
    Attempt::repelled("hostile-handle-exhaustion", 1, "no channel is left"),
    Attempt::repelled("hostile-handle-exhaustion", 2, "no thread is left"),
    Attempt::repelled("hostile-handle-exhaustion", 3, "a lock that finds no handle to wait with"),
    Attempt::repelled("hostile-huge-frame", 0, "a frame as large as a slot").ends(OVERFLOW, &["stack"]),
    Attempt::repelled("hostile-huge-frame", 1, "a frame that ends in the next slot").ends(OVERFLOW, &["stack"]),
    Attempt::repelled("hostile-huge-frame", 2, "a frame that ends far away").ends(OVERFLOW, &["stack"]),
    Attempt::repelled("hostile-huge-frame", 3, "the same on a second thread").ends(OVERFLOW, &["stack"]),
    Attempt::repelled("hostile-huge-frame", 4, "recursion with frames larger than the guard")
        .ends(OVERFLOW, &["stack"]),
    Attempt::repelled("hostile-huge-frame", 5, "the same with a kernel call at each depth").ends(OVERFLOW, &["stack"]),
    Attempt::repelled("hostile-huge-frame", 6, "small frames and a kernel call at each depth, on a second thread")
        .ends(OVERFLOW, &["stack"]),
    Attempt::repelled("hostile-huge-frame", 7, "an argument as large as a slot").ends(OVERFLOW, &["stack"]),
    Attempt::repelled("hostile-lying-lengths", 0, "a loan of fewer bytes than it says").given(Given::Victim),
    Attempt::repelled("hostile-lying-lengths", 1, "empty blocks for every block").given(Given::Victim),
    Attempt::repelled("hostile-lying-lengths", 2, "reads into blocks that are too short").given(Given::VictimAndNames),
    Attempt::repelled("hostile-lying-lengths", 3, "writes from blocks that are too short").given(Given::VictimAndNames),
    Attempt::repelled("hostile-open-traits", 0, "a channel of a contract that it does not declare"),
    Attempt::repelled("hostile-open-traits", 1, "an endpoint taken for one of another contract"),
    Attempt::repelled("hostile-open-traits", 2, "sends when it is the other's turn")
        .ends(EpitaphKind::ContractViolation, &["Call", "Talk", "direction"]),
    Attempt::repelled("hostile-open-traits", 3, "sends a number for a block")
        .ends(EpitaphKind::ContractViolation, &["Give", "Talk", "arguments"]),
    Attempt::repelled("hostile-open-traits", 4, "begins a message inside a message")
        .ends(EpitaphKind::ContractViolation, &["Give", "Talk", "arguments"]),
    Attempt::repelled("hostile-open-traits", 5, "writes more words than the buffer has")
        .ends(EpitaphKind::Panicked, &["does not fit the message buffer"]),
    Attempt::repelled("hostile-open-traits", 6, "an endpoint that says another state"),
    Attempt::repelled("hostile-queue-hoard", 0, "channels with the largest queues, without end")
        .ends(EpitaphKind::MemoryRanOut, &["the most of all"])
        .of_each_size(),
    Attempt::repelled("hostile-queue-hoard", 1, "channels with the largest queues, again and again"),
    Attempt::repelled("hostile-stack-edge", 0, "calls the kernel just above the guard of its stack"),
    Attempt::repelled("hostile-stack-edge", 1, "steps over the guard of its stack"),
    Attempt::repelled("hostile-stray-wakers", 0, "wakers are used after their executor and their thread"),
    Attempt::repelled("hostile-stray-wakers", 1, "one task is woken by many threads"),
    Attempt::repelled("hostile-stray-wakers", 2, "a wait goes on in another executor"),
    Attempt::repelled("hostile-stray-wakers", 3, "waits are forgotten"),
    Attempt::repelled("hostile-stray-wakers", 4, "executors inside each other"),
    Attempt::repelled("hostile-unpaid-blocks", 0, "a loan whose answer is never read").given(Given::Victim),
    Attempt::repelled("hostile-unpaid-blocks", 1, "messages of children that have ended").given(Given::Victim),
    Attempt::repelled("hostile-unpaid-blocks", 2, "loans of children that have ended").given(Given::Victim),
    Attempt::repelled("hostile-use-after-send", 0, "other words in an unsent message"),
    Attempt::repelled("hostile-use-after-send", 1, "loans returned over each other's channel")
        .ends(EpitaphKind::ContractViolation, &["Returned", "not lent over this channel"]),
    Attempt::repelled("hostile-use-after-send", 2, "a panic between a block and its sending")
        .ends(EpitaphKind::Panicked, &["a panic while a value is dropped"]),
    Attempt::repelled("hostile-use-after-send", 3, "writes to the other parts of a block"),
    Attempt::repelled("hostile-use-after-send", 4, "messages that are never sent"),
    Attempt::repelled("hostile-use-after-send", 5, "two messages in one buffer").ends(EpitaphKind::Panicked, BUFFER),
];
