//! Disks that tests make for themselves, and that are full, read-only or broken when they are to be. They need root.
#![allow(dead_code, unreachable_pub, reason = "not every binary uses every part")]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::{TempDir, tempdir};

/// A file system in memory, unmounted when this is dropped.
pub struct Mount {
    dir: TempDir,
}

impl Mount {
    /// An empty one of this size.
    pub fn tmpfs(megabytes: u32) -> Self {
        let mount = Self { dir: tempdir().unwrap() };
        let size = format!("size={megabytes}m");
        let done = mount.mount(&["-t", "tmpfs", "-o", &size, "tmpfs"]);
        assert!(done, "this test mounts a file system: run it as root, or leave it out by name");
        mount
    }

    /// Makes it read-only, once nobody has a file of it open for writing.
    pub fn make_read_only(&self) {
        let begun = std::time::Instant::now();
        while !self.mount(&["-o", "remount,ro"]) {
            assert!(begun.elapsed().as_secs() < 10, "somebody writes on it still");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Takes all the space that is left with this file.
    pub fn fill(&self, ballast: &Path) {
        assert!(ballast.starts_with(self.path()));
        let mut ballast = File::create(ballast).unwrap();
        while ballast.write(&[1; 4096]).is_ok_and(|written| written > 0) {}
    }

    fn mount(&self, arguments: &[&str]) -> bool {
        let output = Command::new("mount").args(arguments).arg(self.path()).output();
        output.is_ok_and(|output| output.status.success())
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let status = Command::new("umount").arg("-l").arg(self.dir.path()).status();
        assert!(status.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

/// ext4 on a loop device, unmounted when this is dropped.
pub struct Disk {
    mountpoint: TempDir,
    device: String,
}

/// Makes a loop device as large as it is told to be, and no larger: what is behind its end then cannot be read or written,
/// and is there again when the device has its size back. `losetup` sets this only for new devices.
const SET_SIZE_LIMIT: &str = "
import fcntl, struct, sys
LOOP_SET_STATUS64, LOOP_GET_STATUS64, SIZE_LIMIT_AT = 0x4C04, 0x4C05, 32
with open(sys.argv[1], 'rb+', buffering=0) as device:
    status = bytearray(232)
    fcntl.ioctl(device, LOOP_GET_STATUS64, status)
    struct.pack_into('Q', status, SIZE_LIMIT_AT, int(sys.argv[2]))
    fcntl.ioctl(device, LOOP_SET_STATUS64, bytes(status))
";

impl Disk {
    /// Makes a file system in a file.
    pub fn format(image: &Path, features: &str) {
        File::create(image).unwrap().set_len(128 << 20).unwrap();
        // One group of blocks with few files: everything about the file system itself is in its first megabyte.
        let small = ["-q", "-F", "-b", "4096", "-N", "1024", "-O", features];
        run("mkfs.ext4", &[&small[..], &[&image.display().to_string()]].concat());
    }

    /// Mounts it.
    pub fn mount(image: &Path) -> Self {
        let mountpoint = tempdir().unwrap();
        let (image, place) = (image.display().to_string(), mountpoint.path().display().to_string());
        run("mount", &["-o", "loop,errors=continue", &image, &place]);
        let device = run("losetup", &["--associated", &image, "--noheadings", "--output", "NAME"]);
        Self { mountpoint, device: device.trim().to_owned() }
    }

    /// From now on the kernel answers with EIO what is written behind the first two megabytes, and what is read there.
    ///
    /// Before them lies what ext4 needs to go on: without it, it would never stop trying to write.
    pub fn break_down(&self) {
        self.limit_to("2097152");
    }

    /// It is as it was.
    pub fn mend(&self) {
        self.limit_to("0");
    }

    fn limit_to(&self, bytes: &str) {
        run("python3", &["-c", SET_SIZE_LIMIT, &self.device, bytes]);
    }

    /// A folder on it that is not there yet.
    pub fn log(&self) -> PathBuf {
        self.mountpoint.path().join("log")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // ext4 does not let go of a disk to which it cannot write.
        if std::thread::panicking() {
            self.mend();
        }
        let status = Command::new("umount").arg(self.mountpoint.path()).status();
        assert!(status.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

/// Runs a program that must succeed, and gives what it prints.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let needs = "this needs root, loop devices, mkfs.ext4 and python3: leave the test out by name where they are missing";
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| {
        panic!("{program}: {error}; {needs}");
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?} failed: {said}; {needs}");
    String::from_utf8(output.stdout).unwrap()
}
