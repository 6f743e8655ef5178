package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mortise-lock/mortise/raftlog"
)

const originName = "origin"

// originText is the format of the file origin, which contains its own inode number. A copy has
// another inode number than its text says.
const originText = "mortise made this directory here. If it was copied or restored, this number is not the file's " +
	"own: %d\n"

func checkOrigin(dir string) error {
	path := filepath.Join(dir, originName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = writeOrigin(dir, path)
		if err != nil {
			err = fmt.Errorf("%w: %w", raftlog.ErrStorage, err)
		}
		return err
	}
	var info os.FileInfo
	if err == nil {
		info, err = os.Stat(path)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", raftlog.ErrStorage, err)
	}
	own, ok := fileNumber(info)
	var said uint64
	if _, err := fmt.Sscanf(string(text), originText, &said); err == nil && (!ok || said == own) {
		return nil
	}
	return fmt.Errorf("%w: %s was copied or restored from a backup. "+
		"A replica that runs twice, or goes back in time, breaks its group. "+
		"Remove the whole directory, and the instance starts as a new one. Only if this is the newest state and "+
		"the original no longer exists (a disk that was moved), remove %s instead",
		ErrCopied, dir, path)
}

// writeOrigin creates the file atomically.
func writeOrigin(dir, path string) error {
	f, err := createOS(path + ".tmp")
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		number, _ := fileNumber(info)
		_, err = fmt.Fprintf(f, originText, number)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	return syncDir(dir)
}
