package console

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/shown"
)

// queue parses a key from "key: holder holder | waiter waiter". A hold is an hour old, or a second
// old if the name of its holder ends in an apostrophe. The name of an instance is also the ID of
// its session.
func queue(text string, now time.Time) mortise.KeyInfo {
	name, rest, _ := strings.Cut(text, ": ")
	k := mortise.KeyInfo{Key: name}
	holders, waiters, _ := strings.Cut(rest, "|")
	for i, h := range strings.Fields(holders) {
		k.Held++
		since := now.Add(-time.Hour)
		if young, is := strings.CutSuffix(h, "'"); is {
			h, since = young, now.Add(-time.Second)
		}
		k.Queue = append(k.Queue, mortise.Standing{Hold: mortise.Hold{Holder: h, Session: h,
			Token: mortise.Token(i + 1), Since: since}})
	}
	for _, w := range strings.Fields(waiters) {
		k.Waiting++
		st := mortise.Standing{Hold: mortise.Hold{Holder: w, Session: w}}
		if candidate, is := strings.CutPrefix(w, "~"); is { // of an election
			st = mortise.Standing{Hold: mortise.Hold{Holder: candidate, Session: candidate,
				Labels: shown.Purpose(shown.Election)}}
		}
		k.Queue = append(k.Queue, st)
	}
	return k
}

func drawn(long time.Duration, keys ...string) (text string, circles [][]link) {
	now := time.Unix(1_800_000_000, 0)
	s := scene{now: now, long: long, all: &answer{}}
	for _, k := range keys {
		s.all.keys = append(s.all.keys, queue(k, now))
	}
	forest, left := s.waits()
	var b strings.Builder
	for _, t := range forest {
		for _, r := range t.rows {
			b.WriteString(strings.Repeat("  ", r.depth))
			switch {
			case r.key != nil:
				b.WriteString("[" + r.key.Name + "]")
			case r.standby:
				b.WriteString(r.label())
			case r.more > 0:
				fmt.Fprintf(&b, "+%d", r.more)
			default:
				b.WriteString(r.label())
			}
			if r.back >= 0 {
				b.WriteString(" -> " + t.rows[r.back].key.Name)
			}
			if r.circled {
				b.WriteString(" !")
			}
			b.WriteString("\n")
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "left: %d\n", left)
	}
	return b.String(), circlesOf(forest)
}

func TestWaitGraph(t *testing.T) {
	for _, c := range []struct {
		name, keys, want string
	}{
		{"no waiter", "a: x|", ""},
		{"a queue", "a: x| y z", "[a]\n  y\n  z\n"},
		{"the most waited for is first", "a: x| y; b: x| y z", "[b]\n  y\n  z\n[a]\n  y\n"},
		{"several calls of one instance in a row", "a: x| y y z y", "[a]\n  y × 2\n  z\n  y\n"},
		{"a long queue", "a: x| p q r s t u", "[a]\n  p\n  q\n  r\n  s\n  +2\n"},
		{"a chain: the waiter holds another", "a: x| y; b: y| z", "[a]\n  y\n    [b]\n      z\n"},
		{"a waiter that holds another key is shown, however far behind", "a: x| p q r s t y; b: y| z",
			"[a]\n  p\n  q\n  r\n  s\n  y\n    [b]\n      z\n  +1\n"},
		{"a key that hangs on two is drawn once", "a: x| y; b: v| y; c: y| z",
			"[a]\n  y\n    [c]\n      z\n[b]\n  y, which holds c\n"},
		{"a circle", "a: x| y; b: y| x", "[a] !\n  y !\n    [b] !\n      x -> a !\n"},
		{"a circle of three, and one that waits for it", "a: x| y; b: y| z; c: z| x w",
			"[c] !\n  x !\n    [a] !\n      y !\n        [b] !\n          z -> c !\n  w\n"},
		{"what waits for its own key is another caller", "a: x| x y; b: x| y", "[a]\n  x\n  y\n[b]\n  y\n"},
		{"not held", "a: | y", "[a]\n  y\n"},
		{"a hold that is young, beside an old one", "a: v x'| y; c: w| x", "[a]\n  y\n[c]\n  x\n"},
		{"a candidacy is no edge", "a: x| ~y ~z; b: y| w", "[b]\n  w\n[a]\n  2 stand by\n"},
		{"a standby queue is folded", "a: x| ~p ~q ~r; b: y| w", "[b]\n  w\n[a]\n  3 stand by\n"},
		{"candidates beside another waiter", "a: x| ~p w ~q", "[a]\n  w\n  2 stand by\n"},
		{"candidates that hold each other's keys are no circle", "a: x| ~y; b: y| ~x", "[a]\n  1 stands by\n[b]\n  " +
			"1 stands by\n"},
		{"shared", "a: x v| y; b: w| v", "[b]\n  v\n    [a]\n      y\n"},
	} {
		if got, _ := drawn(time.Minute, strings.Split(c.keys, "; ")...); got != c.want {
			t.Errorf("%s:\n%swant\n%s", c.name, got, c.want)
		}
	}
	if got, _ := drawn(2*time.Hour, "a: x| y", "b: y| x"); got != "[a]\n  y\n[b]\n  x\n" {
		t.Errorf("holds that are not old are joined:\n%s", got)
	}
	_, circles := drawn(time.Minute, "a: x| y", "b: y| z", "c: z| x")
	if want := [][]link{{{"x", "a", "c"}, {"y", "b", "a"}, {"z", "c", "b"}}}; !reflect.DeepEqual(circles, want) {
		t.Errorf("circles %v, want %v", circles, want)
	}
}

func TestPictureIsBounded(t *testing.T) {
	var keys []string
	for i := range 300 { // each instance holds one key and waits for three others
		keys = append(keys, fmt.Sprintf("key/%d: h%d| h%d h%d h%d", i, i, (i+1)%300, (i*7+1)%300, (i*13+5)%300))
	}
	now := time.Unix(1_800_000_000, 0)
	s := scene{now: now, long: time.Second, all: &answer{}}
	for _, k := range keys {
		s.all.keys = append(s.all.keys, queue(k, now))
	}
	forest, _ := s.waits()
	if len(forest) == 0 || len(forest) > maxTrees {
		t.Errorf("%d trees", len(forest))
	}
	for _, tree := range forest {
		if len(tree.rows) > 4*maxRows {
			t.Errorf("%d rows", len(tree.rows))
		}
		if d := draw(tree); len(d.Boxes)+len(d.Dots) != len(tree.rows) {
			t.Errorf("%d boxes and %d dots for %d rows", len(d.Boxes), len(d.Dots), len(tree.rows))
		}
		d := draw(tree)
		for _, b := range d.Boxes {
			if b.X < 0 || b.W < 40 || b.X+b.W > d.Width || b.Y+keyHeight > d.Height {
				t.Errorf("a box lies outside: %+v of %d x %d", b, d.Width, d.Height)
			}
		}
	}
}
