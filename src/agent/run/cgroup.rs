//! What the child's control group may take of memory, and takes: version 2, and version 1 where that is mounted.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use procfs::process::{MountInfo, Process};

use super::monitor::Memory;

/// From here on a limit is none: version 1 writes the largest number of whole pages for "no limit".
const NO_LIMIT: u64 = 1 << 60;

/// The files of one version.
struct Version {
    file_system: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// The line of `memory.stat` that counts what the kernel gives back when it is asked to.
    reclaimable: &'static str,
}

const V2: Version = Version {
    file_system: "cgroup2",
    limit: "memory.max",
    usage: "memory.current",
    reclaimable: "inactive_file",
};

const V1: Version = Version {
    file_system: "cgroup",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file",
};

/// What the child's group takes and what its tightest limit is; nothing where none applies.
pub(super) fn memory(child: u32) -> Option<Memory> {
    let groups = Process::new(i32::try_from(child).ok()?).and_then(|child| child.cgroups()).ok()?;
    let mounts = Process::myself().and_then(|myself| myself.mountinfo()).ok()?;
    groups.0.iter().find_map(|group| {
        let version = match group.hierarchy {
            0 => V2,
            _ if group.controllers.iter().any(|name| name == "memory") => V1,
            _ => return None,
        };
        let mount = mounts.0.iter().find(|mount| carries(mount, &version))?;
        tightest(&mount.mount_point, &place(mount, &group.pathname), &version)
    })
}

fn carries(mount: &MountInfo, version: &Version) -> bool {
    let is_v1 = version.file_system == V1.file_system;
    mount.fs_type == version.file_system && (!is_v1 || mount.super_options.contains_key("memory"))
}

/// Where a group's files are. In a container the mount may show a part of the tree only, in which the path from
/// outside leads nowhere: then the mount is the group.
fn place(mount: &MountInfo, group: &str) -> PathBuf {
    let inside = Path::new(group).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let place = mount.mount_point.join(inside);
    if place.is_dir() { place } else { mount.mount_point.clone() }
}

/// Of the group and those around it, the one that is nearest to its limit.
fn tightest(mount: &Path, group: &Path, version: &Version) -> Option<Memory> {
    let around = group.ancestors().take_while(|place| place.starts_with(mount));
    let limited = around.filter_map(|place| read(place, version));
    // a/b > c/d without division: u128 holds every product.
    limited.reduce(|a, b| {
        let full = |of: Memory, in_terms_of: Memory| u128::from(of.taken) * u128::from(in_terms_of.max);
        if full(b, a) > full(a, b) { b } else { a }
    })
}

fn read(place: &Path, version: &Version) -> Option<Memory> {
    let number = |file: &str| fs::read_to_string(place.join(file)).ok()?.trim().parse::<u64>().ok();
    // The text `max` is no number, and so no limit.
    let max = number(version.limit).filter(|max| *max > 0 && *max < NO_LIMIT)?;
    let stat = fs::read_to_string(place.join("memory.stat")).unwrap_or_default();
    let reclaimable = stat.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (OsStr::new(name) == version.reclaimable).then(|| value.parse::<u64>().ok())?
    });
    Some(Memory { taken: number(version.usage)?.saturating_sub(reclaimable.unwrap_or(0)), max })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mounted tree with a group `pod/app` in it, with these files, each `path text`.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let mount = tempfile::tempdir().unwrap();
        fs::create_dir_all(mount.path().join("pod/app")).unwrap();
        for (path, text) in files {
            fs::write(mount.path().join(path), text).unwrap();
        }
        mount
    }

    fn of(mount: &tempfile::TempDir, version: &Version) -> Option<Memory> {
        tightest(mount.path(), &mount.path().join("pod/app"), version)
    }

    #[test]
    fn what_the_kernel_can_give_back_does_not_count() {
        let mount = tree(&[
            ("pod/app/memory.max", "1000\n"),
            ("pod/app/memory.current", "900\n"),
            ("pod/app/memory.stat", "anon 500\ninactive_file 300\nactive_file 100\n"),
        ]);
        assert_eq!(of(&mount, &V2), Some(Memory { taken: 600, max: 1000 }));
    }

    #[test]
    fn a_group_around_it_that_is_fuller_counts() {
        let mount = tree(&[
            ("pod/app/memory.max", "max\n"),
            ("pod/app/memory.current", "900\n"),
            ("pod/memory.max", "2000\n"),
            ("pod/memory.current", "1500\n"),
            ("memory.max", "4000\n"),
            ("memory.current", "1600\n"),
        ]);
        assert_eq!(of(&mount, &V2), Some(Memory { taken: 1500, max: 2000 }));
    }

    #[test]
    fn the_older_version_is_read_as_well() {
        let files = |limit| {
            tree(&[
                ("pod/app/memory.limit_in_bytes", limit),
                ("pod/app/memory.usage_in_bytes", "900\n"),
                ("pod/app/memory.stat", "inactive_file 1\ntotal_inactive_file 400\n"),
            ])
        };
        assert_eq!(of(&files("1000\n"), &V1), Some(Memory { taken: 500, max: 1000 }));
        assert_eq!(of(&files("9223372036854771712\n"), &V1), None, "no limit");
    }

    #[test]
    fn a_process_without_a_group_of_its_own_is_no_fault() {
        assert_eq!(memory(u32::MAX / 4), None);
        // Whatever holds for this process, what is taken has a limit above 0.
        assert!(memory(std::process::id()).is_none_or(|memory| memory.max > 0));
    }
}
