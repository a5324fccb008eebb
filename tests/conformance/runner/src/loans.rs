//! Loans: regardless of the borrower, the block is returned.

use alloc::string::ToString;
use alloc::vec::Vec;

use conformance_contract::errand;
use errand::{ExpReady, ImpReadyAfterCall, ImpReadyAfterLend};
use sip::exheap::ExVec;
use sip::process::Child;
use sip::thread;

use crate::job::{channel, citizen, end_of, stop_running};
use crate::messages::{ENDINGS, finish, is_patterned};
use crate::{Outcome, Settings, Test, check, function};

const BYTES: usize = 50_000;

/// The tests of this module.
pub(crate) fn tests() -> Vec<Test> {
    alloc::vec![
        function("loan: returned again and again", returned),
        function("loan: comes home when the borrower ends", borrower_ends),
        function("loan: comes home when the borrower never received it", borrower_never_received),
        function("loan: comes home when the borrower drops it and ends", borrower_drops),
        function("loan: nested, the last borrower ends", last_borrower_ends),
        function("loan: nested, the middle borrower ends", middle_borrower_ends),
        function("loan: nested, all borrowers end", all_borrowers_end),
        function("loan: returned to a lender that ended", lender_ends),
        function("loan: a thousand borrowers in a row", thousand_borrowers),
        function("loan: the borrower is stopped at any moment", stopped_at_any_moment),
    ]
}

fn block() -> Result<ExVec<u8>, alloc::string::String> {
    let mut block = ExVec::new(BYTES).map_err(|status| status.text().to_string())?;
    for (place, byte) in block.iter_mut().enumerate() {
        *byte = place as u8;
    }
    Ok(block)
}

/// Checks that it is the block that was lent, with its first byte incremented by `changes` borrowers.
fn check_home(data: &ExVec<u8>, changes: u8) -> Outcome {
    check!(data.len() == BYTES, "{} bytes came home", data.len());
    check!(data[0] == changes, "the first byte is {}, not {changes}: who changed it?", data[0]);
    check!(is_patterned(&data[1..], 1), "the block changed on its way");
    Ok(())
}

type Lender = errand::Imp<errand::states::ReadyAfterLend>;

/// Waits for the closure of the channel, with the one block that was lent over it.
fn come_home(lender: Lender, changes: u8) -> Outcome {
    let ImpReadyAfterLend::ChannelClosed(mut closed) = lender.receive() else {
        return Err("a dead borrower returned the block".into());
    };
    let mut home = closed.take_home();
    check!(home.len() == 1, "{} blocks came home", home.len());
    let Some(Ok(data)) = home.pop().map(sip::exheap::ExBlock::into_vec::<u8>) else {
        return Err("the block changed its type".into());
    };
    check_home(&data, changes)
}

fn returned(_: &Settings) -> Outcome {
    let (mut importer, exporter) = channel()?;
    let child = citizen("return-loan").number(200).server(exporter).start()?;
    let mut data = block()?;
    for round in 1..=200u8 {
        let ImpReadyAfterLend::Returned { data: back, next } = importer.lend(data).receive() else {
            return Err("the borrower ended".into());
        };
        check_home(&back, round)?;
        (importer, data) = (next, back);
    }
    drop(importer);
    end_of(&child).map(drop)
}

/// Sizes of lent blocks in bytes: small, small of another class, one page, many pages.
const SIZES: [usize; 4] = [64, 3000, 4096, 1 << 16];

/// However far the block, the borrower's change and the answer have got: the block is there, and whole.
fn stopped_at_any_moment(settings: &Settings) -> Outcome {
    let rounds = if settings.long { 4000 } else { 400 };
    let (mut returned, mut came_home) = (0, 0);
    for round in 0..rounds {
        let bytes = SIZES[round % SIZES.len()];
        let (mut importer, exporter) = channel()?;
        let child = citizen("return-loan").number(1 << 30).server(exporter).start()?;
        let mut data = ExVec::new(bytes).map_err(|status| status.text().to_string())?;
        for (place, byte) in data.iter_mut().enumerate() {
            *byte = place as u8;
        }
        for change in 1..=(round % 3) as u8 {
            let ImpReadyAfterLend::Returned { data: back, next } = importer.lend(data).receive() else {
                return Err("the borrower ended".into());
            };
            check!(back[0] == change, "round {round}: the first byte is {}, not {change}", back[0]);
            (importer, data) = (next, back);
        }
        let lender = importer.lend(data);
        for _ in 0..round / SIZES.len() % 7 {
            thread::yield_now();
        }
        stop_running(&child)?;
        let back = match lender.receive() {
            ImpReadyAfterLend::Returned { data, .. } => {
                returned += 1;
                data
            }
            ImpReadyAfterLend::ChannelClosed(mut closed) => {
                came_home += 1;
                let home = closed.take_home().pop().and_then(|block| block.into_vec::<u8>().ok());
                home.ok_or_else(|| alloc::format!("round {round}: no block came home"))?
            }
        };
        let changes = round % 3..=round % 3 + 1;
        check!(back.len() == bytes, "round {round}: {} bytes of {bytes}", back.len());
        check!(changes.contains(&usize::from(back[0])), "round {round}: the first byte is {}", back[0]);
        check!(is_patterned(&back[1..], 1), "round {round}: the block changed on its way");
    }
    crate::log!("{returned} blocks were returned, {came_home} came home");
    Ok(())
}

fn borrower_ends(_: &Settings) -> Outcome {
    for ending in ENDINGS {
        let (importer, exporter) = channel()?;
        let lender = importer.lend(block()?);
        let child = citizen("keep-loan").ending(ending).server(exporter).start()?;
        finish(&child, ending)?;
        come_home(lender, 1)?;
    }
    Ok(())
}

fn borrower_never_received(_: &Settings) -> Outcome {
    for ending in ENDINGS {
        let (importer, exporter) = channel()?;
        let (client, _kept) = channel()?;
        let lender = importer.lend(block()?);
        let child = citizen("receive-nothing").ending(ending).server(exporter).client(client).start()?;
        finish(&child, ending)?;
        come_home(lender, 0)?;
    }
    let (importer, exporter) = channel()?;
    let lender = importer.lend(block()?);
    drop(exporter);
    come_home(lender, 0)
}

fn borrower_drops(_: &Settings) -> Outcome {
    for ending in ENDINGS {
        let (importer, exporter) = channel()?;
        let lender = importer.lend(block()?);
        let child = citizen("drop-loan").ending(ending).server(exporter).start()?;
        finish(&child, ending)?;
        come_home(lender, 0)?;
    }
    Ok(())
}

/// The runner lends to `middle`, which lends on to `last`.
struct Nested {
    lender: Lender,
    middle: Child,
    last: Child,
}

fn nested(last_act: &str, last_ending: &'static str) -> Result<Nested, alloc::string::String> {
    let (importer, exporter) = channel()?;
    let (middle_client, last_server) = channel()?;
    let last = citizen(last_act).number(1).ending(last_ending).server(last_server).start()?;
    let middle = citizen("lend-on").server(exporter).client(middle_client).start()?;
    Ok(Nested { lender: importer.lend(block()?), middle, last })
}

fn last_borrower_ends(_: &Settings) -> Outcome {
    for act in ["keep-loan", "drop-loan", "return-loan"] {
        for ending in ["exit", "panic"] {
            let Nested { lender, middle, last } = nested(act, ending)?;
            let ImpReadyAfterLend::Returned { data, next } = lender.receive() else {
                return Err(alloc::format!("{act}: the middle borrower did not get its loan back to return it"));
            };
            check_home(&data, if act == "drop-loan" { 1 } else { 2 })?;
            let ImpReadyAfterCall::Answer { value: 2, next } = next.call(1).receive() else {
                return Err("the middle borrower does not go on".into());
            };
            drop(next);
            end_of(&middle)?;
            end_of(&last)?;
        }
    }
    Ok(())
}

fn middle_borrower_ends(_: &Settings) -> Outcome {
    let Nested { lender, middle, last } = nested("keep-loan", "wait")?;
    [&middle, &last].into_iter().try_for_each(crate::job::settle)?;
    crate::job::stop_running(&middle)?;
    // The last borrower still has the block: the channel's closure is not reported before its return.
    let Err(lender) = lender.receive_by(sip::Deadline::after_ms(5)) else {
        return Err("the channel's end shows while the block is away".into());
    };
    crate::job::stop_running(&last)?;
    come_home(lender, 2)
}

fn all_borrowers_end(_: &Settings) -> Outcome {
    for _ in 0..20 {
        let Nested { lender, middle, last } = nested("keep-loan", "wait")?;
        sip::thread::yield_now();
        crate::job::stop_running(&last)?;
        let _ = crate::job::stop(&middle)?;
        // Depending on their progress, one, both or none of them changed the block.
        let ImpReadyAfterLend::ChannelClosed(mut closed) = lender.receive() else {
            // The middle one had returned it before it was stopped.
            continue;
        };
        let home = closed.take_home();
        check!(home.len() == 1 && home[0].byte_count() == BYTES, "{} blocks came home", home.len());
    }
    Ok(())
}

fn lender_ends(_: &Settings) -> Outcome {
    for ending in ENDINGS {
        let (importer, exporter) = channel()?;
        let child = citizen("lend-and-end").ending(ending).client(importer).start()?;
        let ExpReady::Lend { data, next } = exporter.receive() else { return Err("no loan came".into()) };
        finish(&child, ending)?;
        check!(data.len() == 4096 && is_patterned(&data, 9), "the block changed when its lender ended");
        let ExpReady::ChannelClosed(_) = next.returned(data).receive() else {
            return Err("a dead lender spoke".into());
        };
        let (importer, exporter) = channel()?;
        let child = citizen("lend-and-end").ending(ending).client(importer).start()?;
        let ExpReady::Lend { data, next } = exporter.receive() else { return Err("no loan came".into()) };
        finish(&child, ending)?;
        drop(next);
        drop(data);
    }
    Ok(())
}

fn thousand_borrowers(_: &Settings) -> Outcome {
    let mut data = block()?;
    for round in 1..=1000u32 {
        let (importer, exporter) = channel()?;
        let lender = importer.lend(data);
        let ending = ["exit", "panic"][round as usize % 2];
        citizen("keep-loan").ending(ending).server(exporter).run()?;
        let ImpReadyAfterLend::ChannelClosed(mut closed) = lender.receive() else {
            return Err("a dead borrower returned the block".into());
        };
        let Some(Ok(back)) = closed.take_home().pop().map(sip::exheap::ExBlock::into_vec::<u8>) else {
            return Err(alloc::format!("the block was lost in round {round}"));
        };
        check_home(&back, round as u8)?;
        data = back;
    }
    Ok(())
}
