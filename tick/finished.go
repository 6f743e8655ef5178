package tick

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/locker"
)

// Store holds the data of keys. If a Locker is also a Store, as *mortise.Node is, Run records
// finished ticks in it.
type Store interface {
	Get(ctx context.Context, key string) (data []byte, revision uint64, err error)
	Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error)
}

const (
	maxFinished = 16              // largest number of ticks in the record of a job
	recording   = 2 * time.Second // how long after T+Late+Skew a tick may be recorded
)

// finished is the record of the last finished ticks of a job, the latest at the end. It has several
// ticks, because an instance whose clock is far ahead may finish a later tick first.
type finished struct {
	store Store // nil if the locker is not a Store
	key   string
}

func finishedOf(locks locker.Locker, job string) finished {
	store, _ := locks.(Store)
	return finished{store, job + "/finished"}
}

func (f finished) has(ctx context.Context, w window) (bool, error) {
	if f.store == nil {
		return false, nil
	}
	data, _, err := f.store.Get(ctx, f.key)
	return slices.Contains(strings.Fields(string(data)), w.name()), err
}

func (f finished) add(ctx context.Context, w window) bool {
	for f.store != nil {
		data, revision, err := f.store.Get(ctx, f.key)
		if err != nil {
			return false
		}
		ticks := append(strings.Fields(string(data)), w.name())
		ticks = ticks[max(0, len(ticks)-maxFinished):]
		_, err = f.store.Put(ctx, f.key, []byte(strings.Join(ticks, " ")), revision)
		if err == nil || !errors.Is(err, mortise.ErrConflict) {
			return err == nil
		}
	}
	return false
}

func (w window) name() string { return w.at.UTC().Format(time.RFC3339Nano) }
