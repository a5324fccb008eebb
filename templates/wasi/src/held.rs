//! Endpoints and blocks that a program holds, by handles of its own.
//!
//! A handle is a claim: it has a place in the table and the number of times that the place was used, so one that was
//! closed, sent or made up names nothing. Deliberately not here: what is done with them ([`calls`](crate::calls)).

use alloc::vec::Vec;

use sip::Status;
use sip::channel::AnyEndpoint;
use sip::exheap::ExVec;

/// What a handle names.
pub enum Thing {
    /// An endpoint.
    Endpoint(AnyEndpoint),
    /// A block, the program's own or on loan to it. Dropping it frees it, or returns it to its lender.
    Block(ExVec<u8>),
}

/// Bits of a handle that are its place.
const PLACE_BITS: u32 = 32;

#[derive(Default)]
struct Place {
    /// How often it was used: 1 for the first time.
    uses: u32,
    thing: Option<Thing>,
}

/// All that a program holds.
#[derive(Default)]
pub struct Held {
    places: Vec<Place>,
    free: Vec<u32>,
}

impl Held {
    /// Adds a thing; returns its handle, which is not 0 and names nothing else later.
    pub fn add(&mut self, thing: Thing) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[index as usize];
        place.uses += 1;
        place.thing = Some(thing);
        u64::from(place.uses) << PLACE_BITS | u64::from(index)
    }

    fn place(&mut self, handle: u64) -> Option<&mut Place> {
        let place = self.places.get_mut(handle as u32 as usize)?;
        (u64::from(place.uses) == handle >> PLACE_BITS).then_some(place)
    }

    /// An endpoint.
    ///
    /// # Errors
    /// The handle names none.
    pub fn endpoint(&mut self, handle: u64) -> Result<&mut AnyEndpoint, Status> {
        match self.place(handle).and_then(|place| place.thing.as_mut()) {
            Some(Thing::Endpoint(endpoint)) => Ok(endpoint),
            _ => Err(Status::BadHandle),
        }
    }

    /// An endpoint, to wait for together with others.
    ///
    /// # Errors
    /// The handle names none.
    pub fn endpoint_shared(&self, handle: u64) -> Result<&AnyEndpoint, Status> {
        let place =
            self.places.get(handle as u32 as usize).filter(|place| u64::from(place.uses) == handle >> PLACE_BITS);
        match place.and_then(|place| place.thing.as_ref()) {
            Some(Thing::Endpoint(endpoint)) => Ok(endpoint),
            _ => Err(Status::BadHandle),
        }
    }

    /// A block.
    ///
    /// # Errors
    /// The handle names none.
    pub fn block(&mut self, handle: u64) -> Result<&mut ExVec<u8>, Status> {
        match self.place(handle).and_then(|place| place.thing.as_mut()) {
            Some(Thing::Block(block)) => Ok(block),
            _ => Err(Status::BadHandle),
        }
    }

    /// Removes a thing; its handle names nothing from then on.
    pub fn take(&mut self, handle: u64) -> Option<Thing> {
        let place = self.place(handle)?;
        let thing = place.thing.take();
        // A place whose uses are all counted is not used again.
        if thing.is_some() && place.uses < u32::MAX {
            self.free.push(handle as u32);
        }
        thing
    }

    /// Puts back what was taken to be sent.
    pub fn put_back(&mut self, handle: u64, thing: Thing) {
        if let Some(place) = self.place(handle) {
            place.thing = Some(thing);
            // Mostly it was taken last.
            if self.free.last() == Some(&(handle as u32)) {
                self.free.pop();
            } else {
                self.free.retain(|free| *free != handle as u32);
            }
        }
    }
}
