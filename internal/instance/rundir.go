package instance

import (
	"fmt"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/raftlog/storage"
	"github.com/mortise-lock/mortise/session"
)

// beginning is what is known of a start before it begins.
type beginning struct {
	cluster.Beginning         // what the directory says; zero in memory
	run               *runDir // nil without Config.RunDir
}

// runDir is the run directory, and the key that an earlier process has left in it. That process has
// certainly ended. The key is read once, so a restart in place never claims the end of an
// incarnation of this process, whose callers still run.
type runDir struct {
	dir    *storage.RunDir
	former nodeid.Key // zero if there is none
}

// openRunDir returns nil if none is configured.
func openRunDir(c *Config, files storage.FS) (*runDir, error) {
	if c.RunDir == "" {
		return nil, nil
	}
	dir, err := storage.OpenRun(c.RunDir, files, c.Logger)
	if err != nil {
		return nil, fmt.Errorf("Config.RunDir: %w", err)
	}
	r := &runDir{dir: dir}
	if seed := dir.Former(); seed != nil {
		if r.former, err = nodeid.ParseKey(seed); err != nil {
			c.Logger.Warn("the run directory has no usable key", "path", c.RunDir, "why", err)
		}
	}
	return r, nil
}

// joins stores the key of this incarnation, without waiting for the disk, and returns what it
// claims in a group. An incarnation that ends before it has joined leaves the key of the former
// one, so the next start can still claim that the former has ended.
func (r *runDir) joins(group uint64, key *nodeid.Key) []byte {
	r.dir.Keep(key.Seed())
	return session.ClaimFormer(r.former, group, key.ID())
}
