use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use super::*;
use crate::{checkpoint, npy};

/// What processes give each other, one gather after another.
struct Table {
    given: Mutex<Vec<Vec<u8>>>,
    all: Barrier,
}

/// A process's part of fields that are given whole.
struct Fake<'a> {
    rank: usize,
    /// The first plane of each rank.
    cuts: &'a [usize],
    problem: &'a Problem,
    fields: &'a [Array],
    table: &'a Table,
}

impl Part for Fake<'_> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn own(&self, field: usize) -> Range<usize> {
        let planes = self.problem.extents_of(field)[self.problem.slowest()];
        self.cuts[self.rank]..self.cuts.get(self.rank + 1).copied().unwrap_or(planes)
    }

    fn read_planes(&mut self, field: usize, planes: Range<usize>) -> Result<Array> {
        let own = self.own(field);
        assert!(planes.start >= own.start && planes.end <= own.end, "{planes:?} of {own:?}");
        let plane = self.fields[field].len() / self.problem.extents_of(field)[self.problem.slowest()];
        self.fields[field].part(planes.start * plane..planes.end * plane)
    }

    fn gather_bytes(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.table.given.lock().unwrap()[self.rank] = own.to_vec();
        self.table.all.wait();
        let all = self.table.given.lock().unwrap().clone();
        self.table.all.wait();
        Ok(all)
    }
}

/// Has a process for each of these cuts do the same, and returns what each of them returned.
fn together<R: Send>(
    problem: &Problem,
    fields: &[Array],
    cuts: &[usize],
    work: impl Fn(&mut dyn Part) -> R + Sync,
) -> Vec<R> {
    let table = Table { given: Mutex::new(vec![Vec::new(); cuts.len()]), all: Barrier::new(cuts.len()) };
    thread::scope(|scope| {
        let start = |rank| {
            let (table, work) = (&table, &work);
            scope.spawn(move || work(&mut Fake { rank, cuts, problem, fields, table }))
        };
        let all: Vec<_> = (0..cuts.len()).map(start).collect();
        all.into_iter().map(|own| own.join().unwrap()).collect()
    })
}

/// Cuts of 13 planes among one to four processes.
const CUTS: [&[usize]; 6] = [&[0], &[0, 7], &[0, 1], &[0, 5, 6], &[0, 3, 4, 12], &[0, 4, 8, 10]];

/// Problems of 13 planes with fields on cells, nodes and faces, and their fields.
fn problems() -> Vec<(Problem, Vec<Array>)> {
    let all = [("cloverleaf", &[13, 5][..]), ("heat", &[13]), ("3d7pt", &[13, 3, 2]), ("fdtd-tm", &[13, 40])];
    let made = all.into_iter().flat_map(|(name, extents)| {
        [DType::F32, DType::F64].map(|dtype| {
            let program = abide_core::catalogue::find(name).unwrap().program(extents.len()).unwrap();
            let problem = Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap();
            let values = |field| {
                Array::from_fn(dtype, problem.values_of(field), |i| {
                    (1.0 + i as f64 + 1e6 * field as f64).sqrt()
                })
            };
            let fields = (0..problem.program.fields().len()).map(values).collect();
            (problem, fields)
        })
    });
    made.collect()
}

#[test]
fn parts_are_the_bytes_of_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (problem, fields) in problems() {
        checkpoint::write(&at("one.npz"), &problem, 7, |field| fields[field].try_clone())
            .unwrap()
            .commit()
            .unwrap();
        let whole = checkpoint::read(&at("one.npz")).unwrap();
        assert!(whole.fields.iter().zip(&fields).all(|(read, own)| read.same_bits(own)));
        let whole = std::fs::read(at("one.npz")).unwrap();
        for cuts in CUTS {
            let name = format!("{} {cuts:?}", problem.program.name());
            let path = at("parts.npz");
            let written = together(&problem, &fields, cuts, |part| {
                let staged = checkpoint::write_parts(&path, &problem, 7, part).unwrap();
                staged.map(|staged| staged.commit().unwrap()).is_some()
            });
            assert!(written[0] && !written[1..].contains(&true), "{name}");
            assert!(std::fs::read(&path).unwrap() == whole, "{name}");
            for (field, values) in fields.iter().enumerate() {
                npy::write(&at("one.npy"), &problem.shape_of(field).unwrap(), values)
                    .unwrap()
                    .commit()
                    .unwrap();
                let path = at("parts.npy");
                together(&problem, &fields, cuts, |part| {
                    let staged = npy::write_parts(&path, &problem, field, part).unwrap();
                    staged.map_or(Ok(()), Staged::commit).unwrap();
                });
                assert!(std::fs::read(&path).unwrap() == std::fs::read(at("one.npy")).unwrap(), "{name}");
            }
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[cfg(unix)]
#[test]
fn what_cannot_be_shared_is_sent_to_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.npy");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let (problem, fields) = problems().swap_remove(1);
    let one = folder.path().join("one.npy");
    npy::write(&one, &problem.shape_of(0).unwrap(), &fields[0]).unwrap().commit().unwrap();
    for cuts in CUTS {
        let read = thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).unwrap()
        });
        together(&problem, &fields, cuts, |part| {
            let staged = npy::write_parts(&pipe, &problem, 0, part).unwrap();
            staged.map_or(Ok(()), Staged::commit).unwrap();
        });
        assert!(read.join().unwrap() == std::fs::read(&one).unwrap(), "{cuts:?}");
    }
}

#[test]
fn a_fault_of_any_process_is_the_error_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let (problem, fields) = problems().swap_remove(0);
    let nowhere = folder.path().join("none/c.npz");
    let errors = together(&problem, &fields, CUTS[4], |part| {
        checkpoint::write_parts(&nowhere, &problem, 7, part).err().unwrap().to_string()
    });
    assert!(errors.iter().all(|error| error == &errors[0]), "{errors:?}");
    assert!(errors[0].contains("none/c.npz: ") && !errors[0].contains("rank"), "{errors:?}");
    let target = Path::new("u.npy");
    let errors = together(&problem, &fields, CUTS[4], |part| {
        let own = match part.rank() {
            0 | 3 => Ok(vec![7]),
            rank => Err(Error::file(target, format!("fault {rank}"), "wait")),
        };
        agree(part, target, own).unwrap_err().to_string()
    });
    assert_eq!(errors, vec!["u.npy: rank 1: fault 1; wait"; 4]);
    let all = together(&problem, &fields, CUTS[4], |part| {
        let own = vec![part.rank() as u8; part.rank()];
        agree(part, target, Ok(own)).unwrap()
    });
    assert_eq!(all, vec![vec![vec![], vec![1], vec![2, 2], vec![3, 3, 3]]; 4]);
}

#[test]
fn a_folder_that_is_not_shared_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("u.npy");
    let (staged, _file) = make(&target, 64, &[3; 16]).unwrap();
    assert!(open(&target, staged.path(), &[3; 16]).is_ok());
    let fault = |path: &Path, token| open(&target, path, token).unwrap_err().to_string();
    let other = fault(staged.path(), &[4; 16]);
    assert!(other.contains("is another one here; write to a folder that all processes see"), "{other}");
    let none = fault(&folder.path().join("none"), &[3; 16]);
    assert!(none.contains("the file that rank 0 began") && none.contains("cannot be opened"), "{none}");
}

#[test]
fn a_field_that_cannot_be_read_ends_all() {
    struct Refusing<'a>(&'a mut dyn Part);
    impl Part for Refusing<'_> {
        fn rank(&self) -> usize {
            self.0.rank()
        }
        fn own(&self, field: usize) -> Range<usize> {
            self.0.own(field)
        }
        fn read_planes(&mut self, field: usize, planes: Range<usize>) -> Result<Array> {
            match (self.0.rank(), field) {
                (2, 1) => Err(Error::limit("memory", 7, 6, "take less")),
                _ => self.0.read_planes(field, planes),
            }
        }
        fn gather_bytes(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
            self.0.gather_bytes(own)
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (problem, fields) = problems().swap_remove(0);
    let path = folder.path().join("c.npz");
    let errors = together(&problem, &fields, CUTS[4], |part| {
        checkpoint::write_parts(&path, &problem, 7, &mut Refusing(part)).err().unwrap().to_string()
    });
    assert!(
        errors.iter().all(|error| error == &errors[0] && error.contains("rank 2: memory: 7")),
        "{errors:?}"
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
