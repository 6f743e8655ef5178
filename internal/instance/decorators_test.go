package instance

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

var errCall = errors.New("the call fails")

type failingStore struct{ volatile bool }

func (failingStore) Load() (raftlog.State, error)                    { return raftlog.State{}, errCall }
func (failingStore) Save(raftlog.Batch) error                        { return errCall }
func (failingStore) Prepare(context.Context, *raftpb.Snapshot) error { return errCall }
func (s failingStore) Volatile() bool                                { return s.volatile }
func (failingStore) Close() error                                    { return errCall }

// allHooks returns Hooks in which each function is set.
func allHooks() *Hooks {
	h := &Hooks{}
	for i, v := 0, reflect.ValueOf(h).Elem(); i < v.NumField(); i++ {
		v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func([]reflect.Value) []reflect.Value { return nil }))
	}
	return h
}

// The decorators of the store pass on each error, whichever hooks are set.
func TestStoresPassErrorsOn(t *testing.T) {
	for name, hooks := range map[string]*Hooks{"no hooks": nil, "empty hooks": {}, "all hooks": allHooks()} {
		n := New(Config{Hooks: hooks, Logger: slog.New(slog.DiscardHandler), World: outside.World{Clock: clock.Monotonic()}})
		n.trace = trace.New(trace.Config{Queued: true, Clock: n.env.clock, Logger: n.logger, Spawn: n.spawn})
		for _, volatile := range []bool{false, true} {
			base := failingStore{volatile}
			for _, decorated := range []raftlog.Store{watchedStore{base, n}, timedStore{base, n},
				n.timed(watchedStore{base, n})} {
				limits.PassesErrors[raftlog.Store](t, errCall, base, decorated)
				if decorated.Volatile() != volatile {
					t.Errorf("%s: %T: Volatile is %v", name, decorated, decorated.Volatile())
				}
			}
		}
		if hung := n.disk.hungFor(n.env.clock.Now().Add(time.Hour)); hung != 0 {
			t.Errorf("%s: a call that has failed counts as running for %v", name, hung)
		}
		n.goroutines.end()
	}
}

// A timed store reports each failed batch, and each batch of entries.
func TestTimedStoresReport(t *testing.T) {
	var reported []error
	n := New(Config{Hooks: &Hooks{Synced: func(_ time.Duration, err error) { reported = append(reported, err) }},
		Logger: slog.New(slog.DiscardHandler), World: outside.World{Clock: clock.Monotonic()}})
	n.trace = trace.New(trace.Config{Queued: true, Clock: n.env.clock, Logger: n.logger, Spawn: n.spawn})
	for _, entries := range [][]*raftpb.Entry{nil, {{}}} {
		if err := n.timed(failingStore{}).Save(raftlog.Batch{Entries: entries}); !errors.Is(err, errCall) {
			t.Error(err)
		}
		if err := n.timed(workingStore{}).Save(raftlog.Batch{Entries: entries}); err != nil {
			t.Error(err)
		}
	}
	n.goroutines.end()
	if err := n.trace.Close(); err != nil {
		t.Error(err)
	}
	if len(reported) != 3 || !errors.Is(reported[0], errCall) || !errors.Is(reported[1], errCall) ||
		reported[2] != nil {
		t.Errorf("reported %v", reported)
	}
}

type workingStore struct{ failingStore }

func (workingStore) Save(raftlog.Batch) error { return nil }

// The records fail if the directory fails, and then keep what they had.
func TestRecordsPassErrorsOn(t *testing.T) {
	dir, err := storage.Open(storage.Config{Path: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	fails := false
	r := &records{dir: dir, during: func(_ diskCall, f func() error) error {
		if fails {
			return errCall
		}
		return f()
	}}
	if _, err := r.Load(); err != nil {
		t.Fatal(err)
	}
	if err := r.Save(map[string][]byte{"a": []byte("1")}); err != nil {
		t.Fatal(err)
	}
	fails = true
	if err := r.Save(map[string][]byte{"a": nil, "b": []byte("2")}); !errors.Is(err, errCall) {
		t.Errorf("a failed Save returns %v", err)
	}
	fails = false
	if err := r.Save(map[string][]byte{"c": []byte("3")}); err != nil {
		t.Fatal(err)
	}
	again := &records{dir: dir, during: r.during}
	all, err := again.Load()
	if err != nil || len(all) != 2 || string(all["a"]) != "1" || string(all["c"]) != "3" {
		t.Errorf("after a failed Save the records are %q, %v", all, err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	var closed cluster.Records = &records{dir: dir, during: r.during}
	if _, err := closed.Load(); err == nil {
		t.Error("records of a closed directory can be loaded")
	}
	if err := closed.Save(nil); err == nil {
		t.Error("records of a closed directory can be saved")
	}
}
