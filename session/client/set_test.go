package client_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/session/client"
)

// told is a session that records what it is told.
type told struct {
	name    string
	calls   []string
	targets []nodeid.Endpoint
	beside  func() // happens once, while a Rebind is under way
}

func (c *told) note(format string, args ...any) {
	c.calls = append(c.calls, fmt.Sprintf(format, args...))
}

func (c *told) Rebind(record []byte, targets []nodeid.Endpoint) {
	if beside := c.beside; beside != nil {
		c.beside = nil
		beside()
	}
	c.targets = targets
	c.note("Rebind(%q, %d)", record, len(targets))
}

func (c *told) SetTargets(targets []nodeid.Endpoint) {
	c.targets = targets
	c.note("SetTargets(%d)", len(targets))
}
func (c *told) Receive(from nodeid.ID, replies []byte) { c.note("Receive(%v, %q)", from, replies) }
func (c *told) Down(peer nodeid.ID)                    { c.note("Down(%v)", peer) }
func (c *told) Leaving()                               { c.note("Leaving()") }
func (c *told) Close()                                 { c.note("Close()") }

func newSet(t *testing.T, own int) (s *client.Set[*told], all []*told) {
	s = &client.Set[*told]{First: &told{name: "first"}, Most: own}
	all = append(all, s.First)
	for i := range own {
		c := &told{name: fmt.Sprint("own", i)}
		if err := s.Add(c); err != nil {
			t.Fatal(err)
		}
		c.calls = nil
		all = append(all, c)
	}
	return s, all
}

// Each event reaches each session once. A new method of SetMember fails without a row.
func TestASetTellsEachSession(t *testing.T) {
	voters, peer := []nodeid.Endpoint{{Addr: "a"}, {Addr: "b"}}, nodeidtest.ID(7)
	rows := map[string]struct {
		do         func(*client.Set[*told])
		first, own string
	}{
		"Rebind": {func(s *client.Set[*told]) { s.Rebind([]byte("f"), []byte("o"), voters) }, `Rebind("f", 2)`,
			`Rebind("o", 2)`},
		"Rebind to none": {func(s *client.Set[*told]) { s.Rebind(nil, nil, nil) }, `Rebind("", 0)`, `Rebind("", 0)`},
		"SetTargets":     {func(s *client.Set[*told]) { s.SetTargets(voters) }, "SetTargets(2)", "SetTargets(2)"},
		"Receive": {func(s *client.Set[*told]) { s.Receive(peer, []byte("r")) }, fmt.Sprintf("Receive(%v, %q)", peer, "r"),
			fmt.Sprintf("Receive(%v, %q)", peer, "r")},
		"Down": {func(s *client.Set[*told]) { s.Down(peer) }, fmt.Sprintf("Down(%v)", peer),
			fmt.Sprintf("Down(%v)", peer)},
		"Leaving": {(*client.Set[*told]).Leaving, "Leaving()", "Leaving()"},
		"Close":   {(*client.Set[*told]).Close, "Close()", "Close()"},
	}
	for i := range reflect.TypeFor[*told]().NumMethod() {
		if name := reflect.TypeFor[*told]().Method(i).Name; rows[name].do == nil {
			t.Errorf("no row has the event %s", name)
		}
	}
	for name, row := range rows {
		s, all := newSet(t, 3)
		row.do(s)
		for i, c := range all {
			want := row.own
			if i == 0 {
				want = row.first
			}
			if !slices.Equal(c.calls, []string{want}) {
				t.Errorf("%s: %s is told %q, want %s", name, c.name, c.calls, want)
			}
		}
	}
}

// A session that is added hears the newest values, also if they change while it is being added. One
// that was dropped hears nothing, and its place is free.
func TestASetKnowsItsSessions(t *testing.T) {
	s, all := newSet(t, 3)
	if err := s.Add(&told{}); !errors.Is(err, client.ErrNoRoom) {
		t.Errorf("a fourth of three sessions: %v", err)
	}
	s.Drop(all[2])
	s.Rebind([]byte("f"), []byte("o"), make([]nodeid.Endpoint, 1))
	if want := []string{`Rebind("o", 1)`}; !slices.Equal(all[1].calls, want) || !slices.Equal(all[3].calls, want) {
		t.Errorf("when another one is dropped, the others hear %q and %q, want %q", all[1].calls, all[3].calls, want)
	}
	late := &told{}
	late.beside = func() { s.SetTargets(make([]nodeid.Endpoint, 5)) }
	if err := s.Add(late); err != nil {
		t.Fatal(err)
	}
	if len(late.targets) != 5 {
		t.Errorf("a session that was added beside a change knows %d voters: %q", len(late.targets), late.calls)
	}
	if len(all[2].calls) > 0 || !slices.Equal(s.Own(), []*told{all[1], all[3], late}) {
		t.Errorf("a dropped session hears %q; there are %d", all[2].calls, len(s.Own()))
	}
	s.Close()
	if err := s.Add(&told{}); !errors.Is(err, client.ErrClosed) {
		t.Errorf("a session of a closed set: %v", err)
	}
}
