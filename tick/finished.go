package tick

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

// Store is what a [Locker] can have besides, and a *mortise.Node has: the data of keys. With it Run
// records which ticks are finished, so that none of them runs again when its instance leaves,
// crashes or loses its lock.
type Store interface {
	Get(ctx context.Context, key string) (data []byte, revision uint64, err error)
	Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error)
}

const (
	maxFinished = 16              // ticks in the record of a job
	recording   = 2 * time.Second // for the record of a tick, beyond the time in which it may begin
)

// finished is the record of the ticks of a job that are finished: its last ones, the latest at the
// end. It is a list and no single time, for an instance whose clock is far ahead must not finish
// the ticks of the others by running its own.
type finished struct {
	store Store // nil: there is none
	key   string
}

func finishedOf(locker Locker, job string) finished {
	store, _ := locker.(Store)
	return finished{store, job + "/finished"}
}

// has reports whether the tick is in the record.
func (f finished) has(ctx context.Context, w window) (bool, error) {
	if f.store == nil {
		return false, nil
	}
	data, _, err := f.store.Get(ctx, f.key)
	return slices.Contains(strings.Fields(string(data)), w.name()), err
}

// add puts the tick into the record, and reports whether it is there.
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

// name is how the tick is called in keys and in the record.
func (w window) name() string { return w.at.UTC().Format(time.RFC3339Nano) }
