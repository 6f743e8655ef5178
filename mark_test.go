package mortise

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// FuzzMark: whatever value and mark, the value comes back, and the mark or none.
func FuzzMark(f *testing.F) {
	for _, value := range []string{"", "busy", markSign, markSign + "\x05mark", markSign + "\xff", "\xff", strings.Repeat("x", lockfsm.MaxValueBytes), markSign + strings.Repeat("x", 1020)} {
		for _, mark := range []string{"", "m", markSign, strings.Repeat("m", markBytes), strings.Repeat("m", markBytes+1)} {
			f.Add([]byte(mark), value)
		}
	}
	f.Fuzz(func(t *testing.T, mark []byte, value string) {
		packed := pack(mark, value)
		gotMark, gotValue := unpack(packed)
		if gotValue != value {
			t.Fatalf("%q with %q came back as %q", value, mark, gotValue)
		}
		fits := len(mark) <= markBytes && len(mark)+len(value)+5 <= lockfsm.MaxValueBytes
		if fits && !bytes.Equal(gotMark, mark) || !fits && len(gotMark) > 0 {
			t.Fatalf("the mark %q came back as %q", mark, gotMark)
		}
		if len(value) <= lockfsm.MaxValueBytes && len(packed) > lockfsm.MaxValueBytes && !strings.HasPrefix(value, markSign) {
			t.Fatalf("a value of %d bytes is packed into %d", len(value), len(packed))
		}
		unpack([]byte(value)) // of others
	})
}

// TestAMarkTravelsWithTheLock: to whoever waits or is refused on another instance, and past the eyes of those who look at values.
func TestAMarkTravelsWithTheLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ears []*heard
		f := startFleet(t, 3, func(c *Config) {
			ear, name := new(heard), c.Name
			ears = append(ears, ear)
			c.Hooks = ear.hooks()
			c.Hooks.Mark = func(ctx context.Context) []byte { return []byte("mark of " + name) }
		})
		for i, value := range []string{"", "busy", strings.Repeat("x", lockfsm.MaxValueBytes)} {
			want := "mark of node-0"
			if i == 2 {
				want = "" // there is no room
			}
			l := f.acquire(0, Request{Key: "k", Value: value})
			_, err := f.nodes[1].TryLock(t.Context(), "k")
			if e := ears[1].last(t); e.Outcome != "held" || string(e.BehindMark) != want || e.Behind.Value != value {
				t.Errorf("refused: %+v", e)
			}
			if text := fmt.Sprint(err); strings.Contains(text, "mark") || strings.Contains(text, `\xff`) || value != "" && !strings.Contains(text, value) {
				t.Errorf("%q", text)
			}
			if info := f.peek(2, "k"); info.Queue[0].Value != value {
				t.Errorf("Peek shows %q", info.Queue[0].Value)
			}
			next := f.later(2, Request{Key: "k"})
			time.Sleep(time.Second) // fake time
			unlock(t, l)
			unlock(t, comes(t, "the next", next))
			synctest.Wait()
			ears[2].mu.Lock()
			granted := false
			for _, e := range ears[2].locks {
				granted = granted || e.Outcome == "granted" && string(e.BehindMark) == want && e.Behind != nil && e.Behind.Value == value
			}
			ears[2].mu.Unlock()
			if !granted {
				t.Errorf("who waited was not told the mark %q: %+v", want, ears[2].locks)
			}
			ears[2].of()
		}
		f.nothingLeft()
	})
}

// TestHooksThatDoNotHearOfLocksCostLocksNothing: nothing is added to a lock for hooks of the node.
func TestHooksThatDoNotHearOfLocksCostLocksNothing(t *testing.T) {
	for _, c := range []struct {
		hooks *Hooks
		want  bool
	}{
		{nil, false},
		{&Hooks{Renewed: func(NodeEvent) {}, Lease: func(NodeEvent) {}}, false},
		{&Hooks{Lost: func(LockEvent) {}}, true},
	} {
		n, err := Start(t.Context(), Config{Logger: slog.New(slog.DiscardHandler), Hooks: c.hooks})
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		l, err := n.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if got := l.hooked != nil; got != c.want {
			t.Errorf("with %+v a lock is looked after: %v", c.hooks, got)
		}
	}
}
