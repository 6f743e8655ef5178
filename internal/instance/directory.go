package instance

import (
	"encoding/json"
	"fmt"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

func openDir(c *Config, files storage.FS) (*storage.Dir, error) {
	if c.Dir == "" {
		return nil, nil
	}
	dir, err := storage.Open(storage.Config{Path: c.Dir, Files: files, Logger: c.Logger})
	if err != nil {
		return nil, fmt.Errorf("Config.Dir: %w", err)
	}
	return dir, nil
}

// clusterRecord is the name of the stored record that contains all records of package cluster. One
// record makes every change atomic.
const clusterRecord = "cluster"

// records implements cluster.Records over a directory. It is not safe for concurrent use.
type records struct {
	dir    *storage.Dir
	site   string            // see storage.Dir.Site
	all    map[string][]byte // the stored records; nil until Load
	during func(diskCall, func() error) error
}

func (r *records) Load() (map[string][]byte, error) {
	b, err := r.dir.Get(clusterRecord)
	if err != nil {
		return nil, err
	}
	r.all = map[string][]byte{}
	if b != nil {
		if err := json.Unmarshal(b, &r.all); err != nil {
			return nil, fmt.Errorf("%w: its record %q cannot be read: %w", cluster.ErrDirectory, clusterRecord, err)
		}
	}
	return copied(r.all), nil
}

func (r *records) Save(changes map[string][]byte) error {
	next := copied(r.all)
	for name, value := range changes {
		if value == nil {
			delete(next, name)
		} else {
			next[name] = value
		}
	}
	b, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if err := r.during(diskRecords,
		func() error { return r.dir.Put(map[string][]byte{clusterRecord: b}) }); err != nil {
		return err
	}
	r.all = next
	return nil
}

func copied(all map[string][]byte) map[string][]byte {
	next := make(map[string][]byte, len(all))
	for name, value := range all {
		next[name] = append([]byte{}, value...)
	}
	return next
}
