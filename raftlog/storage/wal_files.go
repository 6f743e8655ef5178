package storage

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Names of files in a directory. The names of a log contain its raft ID, so that a damaged file of
// an ended log does not affect another log.
const (
	tempFile      = "new.tmp"
	segmentPrefix = "wal-"
	snapPrefix    = "snap-"
	sparePrefix   = "spare-"

	// sparesKept is the minimum number of spares, see sparesFor.
	sparesKept = 2
)

func (w *wal) segmentName(sequence uint64) string {
	return fmt.Sprintf("%s%016x-%016x", segmentPrefix, w.id.ID, sequence)
}

func (w *wal) snapshotName(file uint64) string {
	return fmt.Sprintf("%s%016x-%016x", snapPrefix, w.id.ID, file)
}

func parseName(prefix, name string) (id, n uint64, ok bool) {
	rest, found := strings.CutPrefix(name, prefix)
	if !found || len(rest) != 33 || rest[16] != '-' {
		return 0, 0, false
	}
	if _, err := fmt.Sscanf(rest, "%016x-%016x", &id, &n); err != nil {
		return 0, 0, false
	}
	return id, n, fmt.Sprintf("%s%016x-%016x", prefix, id, n) == name
}

type listing struct {
	segments  map[uint64][]uint64 // raft ID -> sequence numbers, ascending
	snapshots map[uint64][]uint64 // raft ID -> file numbers, ascending
	spares    []string
}

func list(fsys FS, dir string) (l listing, err error) {
	names, err := fsys.List(dir)
	if err != nil {
		return l, err
	}
	slices.Sort(names)
	l.segments, l.snapshots = map[uint64][]uint64{}, map[uint64][]uint64{}
	for _, name := range names {
		if id, n, ok := parseName(segmentPrefix, name); ok {
			l.segments[id] = append(l.segments[id], n)
		} else if id, n, ok := parseName(snapPrefix, name); ok {
			l.snapshots[id] = append(l.snapshots[id], n)
		} else if strings.HasPrefix(name, sparePrefix) {
			l.spares = append(l.spares, name)
		}
	}
	return l, nil
}

// retire turns segments into spares until there are `kept` spares. It removes the remaining
// segments and the files in the list `others`, and syncs the directory. A spare must not be used
// before that sync. Otherwise a crash could leave a file with its old name and a new header.
func retire(fsys FS, dir string, spares *[]string, kept int, segments, others []string) error {
	if len(segments)+len(others) == 0 {
		return nil
	}
	for _, name := range segments {
		if len(*spares) >= kept {
			others = append(others, name)
			continue
		}
		spare := sparePrefix + strings.TrimPrefix(name, segmentPrefix)
		if err := fsys.Rename(filepath.Join(dir, name), filepath.Join(dir, spare)); err != nil {
			return err
		}
		*spares = append(*spares, spare)
	}
	for _, name := range others {
		if err := fsys.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return fsys.SyncDir(dir)
}
