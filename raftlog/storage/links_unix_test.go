//go:build unix

package storage

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Another user may be able to create links in the directory. A Dir must not follow them and
// overwrite a file of this user.
func TestLinksInADirAreNotFollowed(t *testing.T) {
	const text = "a file of this user, which is none of ours"
	for _, name := range []string{originName + ".tmp", metaName + ".tmp", tempFile, lockName, metaName, originName} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			victim, dir := filepath.Join(root, "victim"), filepath.Join(root, "d")
			for _, err := range []error{os.Mkdir(dir, 0o777), os.WriteFile(victim, []byte(text), 0o600),
				os.Symlink(victim, filepath.Join(dir, name))} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if d, err := Open(Config{Path: dir, SegmentBytes: 64 << 10}); err == nil {
				beginLog(t, d, 7, 1)
				closeDir(t, d)
			} else {
				t.Log(err)
			}
			if got, err := os.ReadFile(victim); err != nil || string(got) != text {
				t.Errorf("the file behind the link has %d bytes, %v", len(got), err)
			}
		})
	}
}

func TestADirOpenToOthersIsToldOf(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o750, 0o700} {
		path := filepath.Join(t.TempDir(), "d")
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		d, err := Open(Config{Path: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		closeDir(t, d)
		want := map[os.FileMode]string{0o777: "mode=0777", 0o750: "mode=0750"}[mode]
		if text := log.String(); strings.Count(text, "level=WARN") != min(len(want), 1) ||
			!strings.Contains(text, want) ||
			want != "" && !(strings.Contains(text, "chmod 700") && strings.Contains(text, path)) {
			t.Errorf("%o: %q", mode, text)
		}
	}
}
