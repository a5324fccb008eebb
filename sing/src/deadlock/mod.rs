mod waits;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Repository;
    use crate::systems::{self, Catalogue};
    #[test]
    fn dump() {
        let repository = Repository::find().unwrap();
        let catalogue = Catalogue::read(&repository).unwrap();
        for name in repository.system_names() {
            let path = repository.system_manifest(name.as_ref()).unwrap();
            let t = std::time::Instant::now();
            let installed = systems::described(&repository, &catalogue, &path).unwrap();
            let w = waits::Waits::of(&installed);
            println!("== {name}: {} tasks {} waits {:?}", w.tasks.len(), w.waits.len(), t.elapsed());
            for g in w.groups().iter().filter(|g| w.is_circle(g)) {
                println!("  circle of {}:", g.len());
                { let mut c: Vec<_> = w.within(g).iter().map(|x| x.contract.clone()).collect(); c.sort(); c.dedup(); println!("    {:?} {:?}", g.iter().map(|t| w.tasks[*t].name()).collect::<Vec<_>>(), c); }
            }
        }
    }
}
