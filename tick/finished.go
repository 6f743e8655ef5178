package tick

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

// Store holds the data of keys. A [Locker] may implement it, as *mortise.Node does. Then Run
// records which ticks are finished, so none of them runs again when its instance leaves, crashes or
// loses its lock.
type Store interface {
	Get(ctx context.Context, key string) (data []byte, revision uint64, err error)
	Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error)
}

const (
	maxFinished = 16              // ticks in the record of a job
	recording   = 2 * time.Second // for the record of a tick, beyond the time in which it may begin
)

// finished is the record of the last finished ticks of a job, the latest at the end. It is a list,
// so that an instance whose clock is far ahead does not finish the ticks of the others.
type finished struct {
	store Store // nil if there is none
	key   string
}

func finishedOf(locker Locker, job string) finished {
	store, _ := locker.(Store)
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

// name returns the name of the tick in keys and in the record.
func (w window) name() string { return w.at.UTC().Format(time.RFC3339Nano) }
