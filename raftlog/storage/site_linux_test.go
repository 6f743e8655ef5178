package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mortise-lock/mortise/internal/lab/proof"
)

// mounted mounts a file system in a new directory until the test ends. It skips the test if that is
// impossible here.
func mounted(t *testing.T, source, kind string, flags uintptr, data string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(source, path, kind, flags, data); errors.Is(err, unix.EPERM) && os.Geteuid() != 0 {
		t.Skipf("only root can mount %s: %v", kind, err)
	} else if err != nil {
		proof.Skip(t, "no mount of %s here: %v", kind, err)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	return path
}

// siteAt opens the directory d of path, and returns its Site.
func siteAt(t *testing.T, path string) string {
	t.Helper()
	d, err := Open(Config{Path: filepath.Join(path, "d"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer closeDir(t, d)
	return d.Site()
}

// TestTheSiteOfADirectory opens directories again, at other paths, as copies and with another lock
// file. Only the same lock file of the same mount has the same Site.
func TestTheSiteOfADirectory(t *testing.T) {
	path := mounted(t, "none", "tmpfs", 0, "")
	site := siteAt(t, path)
	if site == "" || siteAt(t, path) != site {
		t.Fatalf("the second start is at %q, the first was at %q", siteAt(t, path), site)
	}
	if at := siteAt(t, mounted(t, path, "", unix.MS_BIND, "")); at != site {
		t.Errorf("through a bind mount it is at %q, not at %q", at, site)
	}
	if at := siteAt(t, mounted(t, "none", "tmpfs", 0, "")); at == site {
		t.Errorf("on another file system there is the same site %q", at)
	}
	moved := filepath.Join(path, "moved")
	if err := os.Rename(filepath.Join(path, "d"), moved); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(path, "d"), os.DirFS(moved)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(path, "d", originName)); err != nil { // the copy is admitted by hand
		t.Fatal(err)
	}
	if at := siteAt(t, path); at == site || at == "" {
		t.Errorf("a copy is at %q, the original at %q", at, site)
	}
	site = siteAt(t, path)
	d, err := Open(Config{Path: filepath.Join(path, "d"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer closeDir(t, d)
	if err := os.Remove(filepath.Join(path, "d", lockName)); err != nil { // while it is held
		t.Fatal(err)
	}
	lock, err := lockFile(filepath.Join(path, "d", lockName))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if at := siteOf(lock); at == site || at == "" {
		t.Errorf("with another lock file it is at %q, and the first holder at %q", at, site)
	}
}

// An overlay has locks of its own kernel, but the number of its device is used again.
func TestAnOverlayHasNoSite(t *testing.T) {
	base := mounted(t, "none", "tmpfs", 0, "")
	for _, name := range []string{"lower", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(base, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path := mounted(t, "overlay", "overlay", 0, fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work",
		base))
	if at := siteAt(t, path); at != "" {
		t.Errorf("its site is %q", at)
	}
}

// TestFileSystemsWhoseLocksProve has the magic numbers of linux/magic.h and of the file systems
// that have theirs elsewhere.
func TestFileSystemsWhoseLocksProve(t *testing.T) {
	for _, c := range []struct {
		name   string
		magic  uint32
		proves bool
	}{
		{"ext2, ext3, ext4", 0xef53, true}, {"xfs", 0x58465342, true}, {"btrfs", 0x9123683e, true},
		{"zfs", 0x2fc12fc1, true}, {"tmpfs", 0x01021994, true},
		{"overlay", 0x794c7630, false}, {"NFS", 0x6969, false}, {"SMB", 0xff534d42, false}, {"SMB 2", 0xfe534d42, false},
		{"Ceph", 0x00c36400, false}, {"FUSE", 0x65735546, false}, {"9p", 0x01021997, false}, {"ocfs2", 0x7461636f, false},
		{"gfs2", 0x01161970, false}, {"Lustre", 0x0bd00bd0, false}, {"ramfs", 0x858458f6, false}, {"none", 0, false},
	} {
		if locksProve(c.magic) != c.proves {
			t.Errorf("%s proves: %v", c.name, !c.proves)
		}
	}
}
