package storage_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/logtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

func TestDirStore(t *testing.T) {
	slow.UnderRace(t)
	for name, size := range map[string]int{"small segments": 16 << 10, "larger ones": 128 << 10} {
		t.Run(name, func(t *testing.T) {
			logtest.TestStore(t, func(t *testing.T) func() raftlog.Store {
				cfg := storage.Config{Path: t.TempDir() + "/d", SegmentBytes: size, Files: noSync{storage.OSFS()},
					Logger: slog.New(slog.DiscardHandler)}
				var dir *storage.Dir
				return func() raftlog.Store {
					if dir != nil {
						if err := dir.Close(); err != nil {
							t.Fatal(err)
						}
					}
					var err error
					if dir, err = storage.Open(cfg); err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { dir.Close() })
					id := raftlog.Identity{Group: 1 << 63, ID: 5}
					// in this case the suite saves another identity
					if strings.HasSuffix(t.Name(), "/joined") {
						id = raftlog.Identity{Group: 3, ID: 1<<64 - 9}
					}
					s, err := dir.Log(id.Group, id.ID)
					if err != nil {
						t.Fatal(err)
					}
					return s
				}
			})
		})
	}
}

type noSync struct{ storage.FS }

func (noSync) SyncDir(string) error { return nil }

func (n noSync) Create(path string) (storage.File, error) {
	f, err := n.FS.Create(path)
	return noSyncFile{f}, err
}

func (n noSync) Open(path string) (storage.File, error) {
	f, err := n.FS.Open(path)
	return noSyncFile{f}, err
}

type noSyncFile struct{ storage.File }

func (noSyncFile) Sync() error { return nil }
