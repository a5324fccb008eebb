//! Content of a disk in copy-on-write pages, so that thousands of copies are cheap.

use std::path::Path;
use std::rc::Rc;

use crate::support;

const PAGE_BYTES: usize = 4096;

/// The content of a disk.
#[derive(Clone, Default)]
pub struct Image {
    pages: Vec<Rc<[u8; PAGE_BYTES]>>,
    bytes: u64,
}

impl Image {
    pub fn from_bytes(bytes: &[u8]) -> Image {
        let zeros = Rc::new([0; PAGE_BYTES]);
        let pages = bytes.chunks(PAGE_BYTES).map(|chunk| {
            if chunk.iter().all(|byte| *byte == 0) {
                return Rc::clone(&zeros);
            }
            let mut page = [0; PAGE_BYTES];
            page[..chunk.len()].copy_from_slice(chunk);
            Rc::new(page)
        });
        Image { pages: pages.collect(), bytes: bytes.len() as u64 }
    }

    pub fn load(path: &Path) -> Image {
        Image::from_bytes(&std::fs::read(path).expect("an image file can be read"))
    }

    pub fn save(&self, path: &Path) {
        support::save(path, &self.to_bytes());
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.pages.iter().flat_map(|page| page.iter().copied()).collect();
        bytes.truncate(self.bytes as usize);
        bytes
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn read(&self, offset: u64, target: &mut [u8]) {
        let mut position = offset as usize;
        let mut done = 0;
        while done < target.len() {
            let within = position % PAGE_BYTES;
            let bytes = (PAGE_BYTES - within).min(target.len() - done);
            target[done..done + bytes].copy_from_slice(&self.pages[position / PAGE_BYTES][within..within + bytes]);
            done += bytes;
            position += bytes;
        }
    }

    pub fn write(&mut self, offset: u64, source: &[u8]) {
        let mut position = offset as usize;
        let mut done = 0;
        while done < source.len() {
            let within = position % PAGE_BYTES;
            let bytes = (PAGE_BYTES - within).min(source.len() - done);
            let page = Rc::make_mut(&mut self.pages[position / PAGE_BYTES]);
            page[within..within + bytes].copy_from_slice(&source[done..done + bytes]);
            done += bytes;
            position += bytes;
        }
    }
}
