package storage

// Site identifies the lock of the directory: the boot of the machine, and the device and the number
// of the lock file. It is empty if this system or this file system proves nothing.
//
// Two starts with the same Site have locked the same file of the same kernel. The kernel gives the
// lock to the later one only after the earlier one has closed its Dir or its process has executed
// its last instruction, so the later start proves that the earlier one has ended. The proof needs a
// file system whose locks and numbers belong to one kernel (ext2 to ext4, xfs, btrfs, zfs, tmpfs):
// on overlay the number of the device is used again, NFS, SMB, Ceph, FUSE and 9p share files
// between kernels. A boot ID alone proves nothing, since containers of one machine share it.
func (d *Dir) Site() string { return d.site }
