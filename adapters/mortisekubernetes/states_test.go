package mortisekubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// short returns the kind and the text of an error.
func short(err error) string {
	if err == nil {
		return "nil"
	}
	kind := ""
	for name, is := range map[string]func(error) bool{"NotFound ": apierrors.IsNotFound,
		"AlreadyExists ": apierrors.IsAlreadyExists, "Conflict ": apierrors.IsConflict,
		"ErrLost ":   func(err error) bool { return errors.Is(err, mortise.ErrLost) },
		"ErrClosed ": func(err error) bool { return errors.Is(err, mortise.ErrClosed) }} {
		if is(err) {
			kind = name
		}
	}
	return kind + err.Error()
}

func lasting(identity string, seconds int) resourcelock.LeaderElectionRecord {
	r := record(identity)
	r.LeaseDurationSeconds = seconds
	return r
}

// named has names for the records that a scene has.
func named(line string) string {
	for _, identity := range []string{"a", "b", "a" + another} {
		for _, seconds := range []int{7, 15} {
			r := lasting(identity, seconds)
			r.AcquireTime = metav1.NewTime(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) // when a bubble begins
			r.RenewTime = r.AcquireTime
			raw, err := json.Marshal(r)
			if err != nil {
				panic(err)
			}
			line = strings.ReplaceAll(line, string(raw), fmt.Sprintf("[%s for %d s]", identity, seconds))
		}
	}
	return strings.ReplaceAll(line, "Operation cannot be fulfilled on ", "")
}

// TestEachMethodInEachState calls each method of a Lock in each state. It compares with
// testdata/states.txt what the call returns, what it tells the caller's Event, the hold, and then
// the identity and the holders in the group, at once and a minute later.
func TestEachMethodInEachState(t *testing.T) {
	type rig struct {
		c      *mortisetest.Cluster
		l      *Lock
		events []string
	}
	create := func(t *testing.T, l *Lock, identity string) {
		if err := l.Create(t.Context(), record(identity)); err != nil {
			t.Error(err)
		}
	}
	states := map[string]func(t *testing.T, r *rig){
		"free":  func(*testing.T, *rig) {},
		"leads": func(t *testing.T, r *rig) { create(t, r.l, "a") },
		"lost": func(t *testing.T, r *rig) {
			create(t, r.l, "a")
			r.c.Lose(0)
			r.c.Ready(0)
		},
		"lost, and stopped": func(t *testing.T, r *rig) {
			create(t, r.l, "a")
			r.c.Lose(0)
			r.c.Ready(0)
			r.l.RecordEvent(stopped)
		},
		"released": func(t *testing.T, r *rig) {
			create(t, r.l, "a")
			if err := r.l.Update(t.Context(), record("")); err != nil {
				t.Error(err)
			}
		},
		"released, and stopped": func(t *testing.T, r *rig) {
			create(t, r.l, "a")
			if err := r.l.Update(t.Context(), record("")); err != nil {
				t.Error(err)
			}
			r.l.RecordEvent(stopped)
		},
		"stopped": func(t *testing.T, r *rig) { create(t, r.l, "a"); r.l.RecordEvent(stopped) },
		"stopped, and begun anew": func(t *testing.T, r *rig) {
			create(t, r.l, "a")
			r.l.RecordEvent(stopped)
			r.l.Describe()
		},
		"another leads": func(t *testing.T, r *rig) { create(t, New(r.c.Node(0), key, "b", Options{}), "b") },
		"another process of its name leads": func(t *testing.T, r *rig) {
			create(t, New(r.c.Node(0), key, "a", Options{}), "a")
		},
		"another program holds it": func(t *testing.T, r *rig) {
			if _, err := r.c.Node(0).Acquire(t.Context(), mortise.Request{Key: key, Value: "x"}); err != nil {
				t.Error(err)
			}
		},
		"the node is closed": func(t *testing.T, r *rig) {
			if err := r.c.Node(0).Close(); err != nil {
				t.Error(err)
			}
		},
	}
	methods := map[string]func(ctx context.Context, l *Lock) string{
		"Get": func(ctx context.Context, l *Lock) string {
			record, raw, err := l.Get(ctx)
			if record == nil {
				return fmt.Sprint(raw, " ", short(err))
			}
			return fmt.Sprintf("%s %d %s %s", record.HolderIdentity, record.LeaseDurationSeconds, raw, short(err))
		},
		"Create":   func(ctx context.Context, l *Lock) string { return short(l.Create(ctx, record("a"))) },
		"Update":   func(ctx context.Context, l *Lock) string { return short(l.Update(ctx, lasting("a", 7))) },
		"release":  func(ctx context.Context, l *Lock) string { return short(l.Update(ctx, record(""))) },
		"an event": func(_ context.Context, l *Lock) string { l.RecordEvent("x"); return "" },
		"stopped":  func(_ context.Context, l *Lock) string { l.RecordEvent(stopped); return "" },
		"Describe": func(_ context.Context, l *Lock) string { return l.Describe() },
	}
	var lines []string
	for _, state := range slices.Sorted(maps.Keys(states)) {
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			synctest.Test(t, func(t *testing.T) {
				r := &rig{c: mortisetest.NewWith(t, 1, mortisetest.Options{MayHold: true})}
				r.l = New(r.c.Node(0), key, "a", Options{Event: func(e string) { r.events = append(r.events, e) }})
				states[state](t, r)
				r.events = nil
				line := fmt.Sprint(state, ", ", method, ": ", methods[method](t.Context(), r.l), "; events ", r.events)
				is := func() string {
					synctest.Wait()
					text := "; identity " + r.l.Identity()
					if held := r.l.Held(); held != nil {
						text += ", hold " + short(held.Err())
					}
					info, err := r.c.Node(0).Peek(t.Context(), key)
					if err != nil {
						return text
					}
					if info.Held > 0 {
						h := info.Queue[0]
						text += fmt.Sprintf(", held by this Lock %v, with %s, %v", r.l.Held() != nil && h.Token == r.l.Held().Token(),
							h.Value, h.Labels)
					}
					return text
				}
				now := is()
				time.Sleep(time.Minute)
				if line += now; is() != now {
					line += is()
				}
				lines = append(lines, named(line))
			})
		}
	}
	want, err := os.ReadFile("testdata/states.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(lines, "\n") + "\n"; got != string(want) {
		t.Errorf("\n%s", got)
	}
}

// TestTheDelayOfALock compares the LockDelay of a request for each option.
func TestTheDelayOfALock(t *testing.T) {
	for _, c := range []struct {
		option time.Duration
		lease  int
		want   time.Duration
	}{{0, 15, 16 * time.Second}, {0, 0, time.Second}, {1, 15, 1}, {time.Minute, 15, time.Minute}, {-1, 15, 0},
		{-time.Hour, 15, 0}} {
		r := record("a")
		r.LeaseDurationSeconds = c.lease
		if got := (&Lock{options: Options{LockDelay: c.option}}).delay(r); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestTheContextsOfCallsEnd checks that no context of a call to the node outlives the call, with
// its timer.
func TestTheContextsOfCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []context.Context
		c := mortisetest.NewWith(t, 1, mortisetest.Options{MayHold: true, Configure: func(_ int, c *mortise.Config) {
			c.Hooks = &mortise.Hooks{
				Acquired: func(ctx context.Context, _ mortise.LockEvent) any { all = append(all, ctx); return nil },
				Unlocked: func(ctx context.Context, _ mortise.LockEvent) { all = append(all, ctx) }}
		}})
		l, ctx := New(c.Node(0), key, "a", Options{}), t.Context()
		if err := errors.Join(l.Create(ctx, record("a")), l.Update(ctx, record(""))); err != nil {
			t.Fatal(err)
		}
		all = all[1:] // the context of Create is that of the caller
		if len(all) != 1 {
			t.Errorf("%d calls", len(all))
		}
		for i, ctx := range all {
			if ctx.Err() == nil {
				t.Errorf("the context of call %d goes on", i)
			}
		}
	})
}
