package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// thing is one thing that a caller can ask for. matrix_things_test.go has the list.
type thing struct {
	name   string
	fields []string // of Request and Part
	call   *ownCall // nil means Acquire
	mode   *mortise.Mode
	needs  string // another thing, which is asked for, too
	ask    func(r *mortise.Request)
	// observe fails unless the effect of the thing is seen.
	observe func(s *stage) error
	ends    bool   // the lock has ended after the observation
	undoes  string // a thing whose effect is not seen after that of this one
}

// ownCall is a call for locks besides Acquire. It has some fields of Request in its options.
type ownCall struct {
	options reflect.Type
	takes   []string // other things that the call can ask for
}

// refusals are the pairs that are not possible, as docs/FEATURES.md lists them.
type refusal struct{ one, other, reason string }

var errAnew = errors.New("the request did not enter the lock: it was granted anew")

// isRefusal reports whether an error is how a call refuses a pair.
func isRefusal(err error) bool {
	return errors.Is(err, mortise.ErrBadRequest) || errors.Is(err, mortise.ErrNotHeld) || errors.Is(err, errAnew)
}

// stage is a lock that was asked for with two things.
type stage struct {
	f       *fleet
	asked   []*thing // the two, in the order of their observations, and what they need
	key     string
	lock    *mortise.Lock
	former  *mortise.Lock // whose hold was resumed
	granted time.Time
	lowered bool // the lock was downgraded
}

// with returns the things that are asked for in a pair: the two and what they need. Two modes are
// that of Key and that of a part of Also.
func with(one, other *thing) (all []*thing) {
	all = append(all, one, other)
	for _, th := range all {
		if th.needs != "" && th.needs != one.name && th.needs != other.name {
			all = append(all, thingOf(th.needs))
		}
	}
	if modes := modesOf(all); len(modes) == 2 && !slices.Contains(all, thingOf("Also")) {
		all = append(all, thingOf("Also"))
	}
	return all
}

func modesOf(all []*thing) (modes []mortise.Mode) {
	for _, th := range all {
		if th.mode != nil && !slices.Contains(modes, *th.mode) {
			modes = append(modes, *th.mode)
		}
	}
	return modes
}

func thingOf(name string) *thing {
	at := slices.IndexFunc(things, func(th *thing) bool { return th.name == name })
	return things[at]
}

// refusalOf returns the row of the table that forbids what is asked for, or nil.
func refusalOf(all []*thing) *refusal {
	asks := func(name string) bool {
		return slices.ContainsFunc(all, func(th *thing) bool { return th.name == name })
	}
	for i := range refusals {
		if asks(refusals[i].one) && asks(refusals[i].other) {
			return &refusals[i]
		}
	}
	return nil
}

// unsaid reports whether a pair cannot be written down: one of the two is a call without a field
// for something that is asked for.
func unsaid(all []*thing) bool {
	for _, th := range all {
		if th.call == nil {
			continue
		}
		for _, other := range all {
			if other != th && len(other.fields) > 0 && !slices.Contains(th.call.takes, other.name) {
				return true
			}
		}
	}
	return false
}

func (s *stage) also() string { return s.key + "-also" }

// keyOf returns the key that is locked with a mode.
func (s *stage) keyOf(mode mortise.Mode) string {
	if modes := modesOf(s.asked); len(modes) == 2 && modes[1] == mode {
		return s.also()
	}
	return s.key
}

// request returns what the two things ask for, for another key if need be.
func (s *stage) request(key string) mortise.Request {
	r := mortise.Request{Key: key}
	modes := modesOf(s.asked)
	if len(modes) > 0 {
		r.Mode = modes[0]
	}
	for _, th := range s.asked {
		if th.ask != nil {
			th.ask(&r)
		}
	}
	if len(modes) == 2 {
		r.Also[0].Mode = modes[1]
	}
	if s.lowered {
		if r.Mode == mortise.Exclusive {
			r.Mode = mortise.Shared
		}
		for i := range r.Also {
			if r.Also[i].Mode == mortise.Exclusive {
				r.Also[i].Mode = mortise.Shared
			}
		}
	}
	return r
}

// acquire asks on node 0 for the lock of a key.
func (s *stage) acquire(ctx context.Context, key string) (*mortise.Lock, error) {
	n, r := s.f.nodes[0], s.request(key)
	sticky := mortise.StickyOptions{Shared: r.Mode == mortise.Shared, Try: r.Try, Notice: r.Notice}
	switch {
	case s.asks("Resume") && s.lock == nil:
		var err error
		if s.asks("sticky") {
			s.former, err = s.f.nodes[1].LockSticky(ctx, key, sticky)
		} else {
			s.former, err = s.f.nodes[1].Acquire(ctx, mortise.Request{Key: key, Mode: r.Mode, Tree: r.Tree, Also: r.Also})
		}
		if err != nil {
			return nil, err
		}
		return n.Resume(ctx, key, s.former.Token(), mortise.ResumeOptions{MaxHold: r.MaxHold, MaxIdle: r.MaxIdle,
			JeopardyGrace: r.JeopardyGrace, LockDelay: r.LockDelay, Notice: r.Notice, Value: r.Value, Labels: r.Labels})
	case s.asks("sticky"):
		if s.lock == nil { // the instance keeps the lock already
			if l, err := n.LockSticky(ctx, key, mortise.StickyOptions{Shared: sticky.Shared}); err != nil ||
				l.Unlock(ctx) != nil {
				return nil, fmt.Errorf("the lock is not kept: %w", asText(err))
			}
		}
		return n.LockSticky(ctx, key, sticky)
	}
	return n.Acquire(ctx, r)
}

func (s *stage) asks(name string) bool {
	return slices.ContainsFunc(s.asked, func(th *thing) bool { return th.name == name })
}

// try reports how a request of another node with Try ends. It gives back what it gets.
func (s *stage) try(r mortise.Request) error {
	r.Try = true
	l, err := s.f.nodes[1].Acquire(brief(s.f.t), r)
	if err != nil {
		return err
	}
	return l.Unlock(brief(s.f.t))
}

// keepsOut fails unless the lock excludes a request, letsIn unless it does not.
func (s *stage) keepsOut(r mortise.Request) error {
	if err := s.try(r); !errors.Is(err, mortise.ErrHeld) {
		return fmt.Errorf("a request for %q, %v, ends with: %w", r.Key, r.Mode, asText(err))
	}
	return nil
}

func (s *stage) letsIn(r mortise.Request) error {
	if err := s.try(r); err != nil {
		return fmt.Errorf("a request for %q, %v, ends with: %w", r.Key, r.Mode, asText(err))
	}
	return nil
}

// asText hides what an error of another request matches, so that it is not taken for a refusal.
func asText(err error) error { return fmt.Errorf("%v", err) }

// standing returns how other instances see the lock.
func (s *stage) standing(key string) (mortise.Standing, error) {
	info, err := s.f.nodes[1].Peek(brief(s.f.t), key)
	if err != nil {
		return mortise.Standing{}, err
	}
	for _, st := range info.Queue {
		if st.Token == s.lock.Token() {
			return st, nil
		}
	}
	return mortise.Standing{}, fmt.Errorf("%q has no hold with token %d: %+v", key, s.lock.Token(), info)
}

// observe asks for both things, and observes both. It returns the first refusal.
func (s *stage) observe() error {
	l, err := s.acquire(brief(s.f.t), s.key)
	if err != nil {
		return fmt.Errorf("the call fails: %w", err)
	}
	s.lock, s.granted = l, time.Now()
	defer s.finish()
	for i, th := range s.asked[:2] {
		if i == 1 && (s.asked[0].ends || s.asked[0].undoes == th.name) {
			continue
		}
		if err := th.observe(s); err != nil {
			return fmt.Errorf("%s: %w", th.name, err)
		}
		if err := s.lock.Err(); err != nil && !th.ends {
			return fmt.Errorf("%s has ended the lock: %w", th.name, err)
		}
	}
	return nil
}

// finish ends the hold, also one that its LockDelay keeps, so that its history can be judged.
func (s *stage) finish() {
	_ = s.lock.Unlock(brief(s.f.t))
	_, _ = s.f.nodes[1].ForceUnlock(brief(s.f.t), s.key, s.lock.Token(), "the end of the test")
}

// TestEveryPairOfThings asks for each two things that a caller can ask for at once, in both orders,
// and observes the effect of both. A pair is refused only if the table of docs/FEATURES.md says
// so, or if a call has no field for it. The histories of all pairs are judged. At a merge, each
// twelfth pair that works is asked for, in one of the orders, in turn.
func TestEveryPairOfThings(t *testing.T) {
	slow.UnderRace(t)
	pairs, asked := 0, 0
	for i, one := range things {
		for _, other := range things[:i] {
			pairs++
			all := with(one, other)
			if unsaid(all) {
				continue
			}
			asked++
			t.Run(one.name+" and "+other.name, func(t *testing.T) {
				orders := [][2]*thing{{one, other}, {other, one}}
				if testing.Short() && refusalOf(all) == nil {
					if asked%12 > 0 {
						t.Skip("this pair is left to -long")
					}
					orders = orders[asked/12%2:][:1]
				}
				pair(t, orders)
			})
		}
	}
	t.Logf("%d things, %d pairs, %d of them can be written down", len(things), pairs, asked)
	if pairs != 231 {
		t.Errorf("%d pairs, want 231", pairs)
	}
}

func pair(t *testing.T, orders [][2]*thing) {
	one, other := orders[0][0], orders[0][1]
	wanted := refusalOf(with(one, other))
	var seen error
	for _, order := range orders {
		bubble(t, func(t *testing.T) {
			f := startFleet(t, 3, func(c *mortise.Config) { c.SessionTTL = matrixTTL })
			s := &stage{f: f, asked: with(order[0], order[1]), key: "top/node"}
			if s.asks("sticky") {
				time.Sleep(10 * time.Second) // the group has the rules of sticky locks
			}
			err := s.observe()
			switch {
			case err == nil:
			case wanted != nil && isRefusal(err):
				seen = err
			default:
				t.Errorf("%s, then %s: %v", order[0].name, order[1].name, err)
			}
		})
	}
	if wanted != nil && seen == nil && !t.Failed() {
		t.Errorf("docs/FEATURES.md says that %s and %s are refused, and they are not", wanted.one, wanted.other)
	}
}

// A field of Request or Part without a thing, or a thing of a call that has a field for it, would
// not be in the matrix.
func TestTheMatrixHasARowForEveryField(t *testing.T) {
	has := map[string]bool{}
	for _, th := range things {
		for _, field := range th.fields {
			has[field] = true
		}
		if th.observe == nil || th.ask == nil && th.mode == nil && len(th.fields) > 0 {
			t.Errorf("%s is not asked for or not observed", th.name)
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[mortise.Request](), reflect.TypeFor[mortise.Part]()} {
		for i := range of.NumField() {
			if f := of.Field(i); f.IsExported() && f.Name != "Key" && !has[f.Name] {
				t.Errorf("%s.%s is in no row of the matrix", of.Name(), f.Name)
			}
		}
	}
	for _, th := range things {
		if th.call == nil {
			continue
		}
		for i := range th.call.options.NumField() {
			name := th.call.options.Field(i).Name
			if !slices.ContainsFunc(th.call.takes, func(other string) bool {
				return other == name || slices.Contains(thingOf(other).fields, name)
			}) {
				t.Errorf("%s: %s of its options is not among what it takes", th.name, name)
			}
		}
	}
}

// The table of docs/FEATURES.md is that of this test, and has at most 12 rows.
func TestTheRefusalsAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/FEATURES.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "## What cannot be asked for together\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var rows []string
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| one |") {
			rows = append(rows, strings.TrimSuffix(line, "\n"))
		}
	}
	var want []string
	for _, r := range refusals {
		want = append(want, fmt.Sprintf("| %s | %s | %s |", r.one, r.other, r.reason))
	}
	if !found || !slices.Equal(rows, want) {
		t.Errorf("docs/FEATURES.md has\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
	if len(refusals) > 12 {
		t.Errorf("%d refusals, more than 12", len(refusals))
	}
}
