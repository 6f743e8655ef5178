package mortisemigrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-migrate/migrate/v4/database"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// noted is a driver that notes its calls. Those that are to fail do.
type noted struct {
	calls *[]string
	fails *string
}

func (n noted) note(call string) error {
	*n.calls = append(*n.calls, call)
	if name, _, _ := strings.Cut(call, " "); name == *n.fails {
		return errors.New(name + " fails")
	}
	return nil
}

func (n noted) Open(url string) (database.Driver, error) { return n, n.note("Open " + url) }
func (n noted) Close() error                             { return n.note("Close") }
func (n noted) Lock() error                              { return n.note("Lock") }
func (n noted) Unlock() error                            { return n.note("Unlock") }
func (n noted) Drop() error                              { return n.note("Drop") }
func (n noted) SetVersion(version int, dirty bool) error {
	return n.note(fmt.Sprint("SetVersion ", version, " ", dirty))
}
func (n noted) Version() (int, bool, error) { return 7, true, n.note("Version") }
func (n noted) Run(r io.Reader) error {
	text, err := io.ReadAll(r)
	return errors.Join(n.note("Run "+string(text)), err)
}

// rig is a Driver in a group of one.
type rig struct {
	c     *mortisetest.Cluster
	d     *Driver
	calls []string
	fails string
}

// variant is how a method is called. fails is the method of the wrapped driver that fails.
type variant struct {
	both  bool
	fails string
}

func (v variant) String() (text string) {
	if v.both {
		text += ", both"
	}
	if v.fails != "" {
		text += ", " + v.fails + " fails"
	}
	return text
}

// short returns the text of an error, with names for the longest.
func short(err error) string {
	if err == nil {
		return "nil"
	}
	text := err.Error()
	for name, long := range map[string]error{"errUnused": errUnused, "errInUse": errInUse, "errClosed": errClosed,
		"ErrLocked": database.ErrLocked, "ErrNotLocked": database.ErrNotLocked, "ErrLost": mortise.ErrLost} {
		text = strings.ReplaceAll(text, long.Error(), name)
	}
	text, _, _ = strings.Cut(text, " (when")
	return text
}

// TestEachMethodInEachState calls each method of a Driver in each state, with the lock of mortise
// alone and with both, also if the wrapped driver fails. It compares with testdata/states.txt what
// the call and Err return, what is called of the wrapped driver, and how many hold the lock, at
// once and a minute later.
func TestEachMethodInEachState(t *testing.T) {
	lock := func(r *rig) { _ = r.d.Lock() }
	states := map[string]func(t *testing.T, r *rig){
		"unlocked":  func(*testing.T, *rig) {},
		"locked":    func(_ *testing.T, r *rig) { lock(r) },
		"used":      func(_ *testing.T, r *rig) { lock(r); r.d.Token(); time.Sleep(time.Minute) },
		"abandoned": func(_ *testing.T, r *rig) { lock(r); time.Sleep(firstUse + time.Second) },
		"abandoned and locked again": func(_ *testing.T, r *rig) {
			lock(r)
			time.Sleep(firstUse + time.Second)
			lock(r)
			r.d.Token()
		},
		"unlocked again": func(_ *testing.T, r *rig) { lock(r); _ = r.d.Unlock() },
		"lost":           func(_ *testing.T, r *rig) { lock(r); r.d.Token(); r.c.Lose(0); r.c.Ready(0) },
		"closed":         func(_ *testing.T, r *rig) { _ = r.d.Close() },
		"locked by another": func(t *testing.T, r *rig) {
			if _, err := r.c.Node(0).Lock(t.Context(), "k"); err != nil {
				t.Error(err)
			}
		},
	}
	methods := map[string]func(d *Driver) (string, error){
		"Lock":        func(d *Driver) (string, error) { return "", d.Lock() },
		"Unlock":      func(d *Driver) (string, error) { return "", d.Unlock() },
		"Close":       func(d *Driver) (string, error) { return "", d.Close() },
		"Close twice": func(d *Driver) (string, error) { return short(d.Close()) + " ", d.Close() },
		"Token":       func(d *Driver) (string, error) { return fmt.Sprint(d.Token() > 0, " "), nil },
		"SetVersion":  func(d *Driver) (string, error) { return "", d.SetVersion(3, true) },
		"Run":         func(d *Driver) (string, error) { return "", d.Run(strings.NewReader("x")) },
		"Drop":        func(d *Driver) (string, error) { return "", d.Drop() },
		"Version": func(d *Driver) (string, error) {
			version, dirty, err := d.Version()
			return fmt.Sprint(version, " ", dirty, " "), err
		},
		"Open": func(d *Driver) (string, error) {
			opened, err := d.Open("u")
			if err != nil {
				return fmt.Sprint(opened, " "), err
			}
			o := opened.(*Driver)
			return fmt.Sprint(o != d && o.node == d.node && o.key == d.key && o.options == d.options, " "), nil
		},
	}
	var lines []string
	for _, state := range slices.Sorted(maps.Keys(states)) {
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			variants := []variant{{}, {fails: method}}
			switch method {
			case "Lock", "Unlock":
				variants = []variant{{}, {both: true}, {true, method}}
			case "Close":
				variants = []variant{{}, {both: true}, {true, "Close"}, {true, "Unlock"}}
			case "Close twice":
				variants = []variant{{}, {both: true}}
			case "Token":
				variants = variants[:1]
			}
			for _, v := range variants {
				synctest.Test(t, func(t *testing.T) {
					r := &rig{c: mortisetest.NewWith(t, 1, mortisetest.Options{MayHold: true})}
					r.d = Wrap(noted{&r.calls, &r.fails}, r.c.Node(0), "k", Options{Both: v.both})
					states[state](t, r)
					r.calls, r.fails = nil, v.fails
					begin := time.Now()
					result, err := methods[method](r.d)
					line := fmt.Sprint(state, ", ", method, v, ": ", result, short(err))
					if took := time.Since(begin); took > 0 {
						line += fmt.Sprintf(" after %v", took)
					}
					is := func() string {
						synctest.Wait()
						info, err := r.c.Node(0).Peek(t.Context(), "k")
						if err != nil {
							t.Error(err)
						}
						calls := r.calls
						r.calls = nil
						return fmt.Sprintf("; calls %v, held %d, Err %s", calls, info.Held, short(r.d.Err()))
					}
					now := is()
					time.Sleep(time.Minute)
					if line, later := line+now, is(); now[strings.Index(now, "]"):] == later[strings.Index(later, "]"):] &&
						strings.Contains(later, "[]") {
						lines = append(lines, line)
					} else {
						lines = append(lines, line+later)
					}
				})
			}
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
		var calls []string
		d := Wrap(noted{&calls, new(string)}, c.Node(0), "k", Options{})
		if err := errors.Join(d.Lock(), d.Unlock()); err != nil {
			t.Fatal(err)
		}
		if len(all) != 2 {
			t.Errorf("%d calls", len(all))
		}
		for i, ctx := range all {
			if ctx.Err() == nil {
				t.Errorf("the context of call %d goes on", i)
			}
		}
	})
}
