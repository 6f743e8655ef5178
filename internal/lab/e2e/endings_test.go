package e2e

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/session/client"
)

// meanings are the errors that a caller can tell from each other with errors.Is or errors.As, by
// their names in the root package.
var meanings = map[string]func(error) bool{
	"ErrHeld": is(mortise.ErrHeld), "ErrLost": is(mortise.ErrLost), "ErrInJeopardy": is(mortise.ErrInJeopardy),
	"ErrUnlocked": is(mortise.ErrUnlocked), "ErrNotReady": is(mortise.ErrNotReady),
	"ErrUnsupported": is(mortise.ErrUnsupported), "ErrLeaving": is(mortise.ErrLeaving),
	"ErrVoteLost": is(mortise.ErrVoteLost), "ErrClosed": is(mortise.ErrClosed),
	"ErrQueueFull": is(mortise.ErrQueueFull), "ErrOverloaded": is(mortise.ErrOverloaded),
	"ErrNoRoom": is(mortise.ErrNoRoom), "ErrConflict": is(mortise.ErrConflict), "ErrKept": is(mortise.ErrKept),
	"ErrNotHeld": is(mortise.ErrNotHeld), "ErrBadRequest": is(mortise.ErrBadRequest),
	"ErrNotAllowed":   is(mortise.ErrNotAllowed),
	"ErrBadKey":       is(mortise.ErrBadKey),
	"NotAllowedError": as[*mortise.NotAllowedError], "HeldError": as[*mortise.HeldError],
	"DeadlockError": as[*mortise.DeadlockError], "ForcedError": as[*mortise.ForcedError],
	"EnteredError": as[*mortise.EnteredError],
	"context":      func(err error) bool { return is(context.Canceled)(err) || is(context.DeadlineExceeded)(err) },
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func as[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// ending is one way in which a call can end.
type ending struct {
	means string // the names in meanings that the error matches; it must match no other
	call  func(f *fleet) error
}

const forever = 0 // a node that no other ending disturbs

func (f *fleet) try(i int, r any) error {
	_, err := acquire(brief(f.t), f.nodes[i], r)
	return err
}

// lost returns the error of a lock after something has happened to it.
func (f *fleet) lost(r mortise.Request, happens func(*mortise.Lock)) error {
	l, err := f.nodes[forever].Acquire(brief(f.t), r)
	if err != nil {
		f.t.Fatal(err)
	}
	happens(l)
	time.Sleep(time.Second)
	return l.Err()
}

// endings are called in this order. One of them cuts node 2 off, and another lets node 0 leave.
var endings = []ending{
	{"ErrBadKey", func(f *fleet) error { return f.try(0, mortise.Request{}) }},
	{"ErrBadRequest", func(f *fleet) error { return f.try(0, mortise.Request{Key: "k", MaxHold: -1}) }},
	{"EnteredError ErrBadRequest", func(f *fleet) error {
		l := f.lock(0, "entered")
		_, err := f.nodes[0].Acquire(l.Context(brief(f.t)), mortise.Request{Key: "entered", Value: "another"})
		return err
	}},
	{"context", func(f *fleet) error {
		ctx, cancel := context.WithCancel(f.t.Context())
		cancel()
		_, err := f.nodes[0].Lock(ctx, "free")
		return err
	}},
	{"context", func(f *fleet) error {
		f.lock(0, "busy")
		ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
		defer cancel()
		_, err := f.nodes[1].Lock(ctx, "busy")
		return err
	}},
	{"ErrHeld HeldError", func(f *fleet) error { return f.try(1, mortise.Request{Key: "busy", Try: true}) }},
	{"ErrQueueFull", func(f *fleet) error {
		go func() { _, _ = f.nodes[1].Lock(brief(f.t), "busy") }()
		time.Sleep(time.Second)
		return f.try(1, mortise.Request{Key: "busy", MaxWaiting: 1})
	}},
	{"ErrQueueFull", func(f *fleet) error { // no caller holds "free too", for which a request for both waits
		go func() { _, _ = f.nodes[1].LockAll(brief(f.t), "busy", "free too") }()
		time.Sleep(time.Second)
		return f.try(1, mortise.Request{Key: "free too", Try: true})
	}},
	{"DeadlockError", func(f *fleet) error {
		l, err := f.nodes[0].RLock(brief(f.t), "read")
		if err != nil {
			return err
		}
		_, err = f.nodes[0].Lock(l.Context(brief(f.t)), "read")
		return err
	}},
	{"ErrUnlocked", func(f *fleet) error {
		return f.lost(mortise.Request{Key: "a"}, func(l *mortise.Lock) { unlock(f.t, l) })
	}},
	{"ErrLost", func(f *fleet) error {
		return f.lost(mortise.Request{Key: "b", MaxHold: time.Millisecond}, func(*mortise.Lock) {})
	}},
	{"ErrLost ForcedError", func(f *fleet) error {
		return f.lost(mortise.Request{Key: "c"}, func(l *mortise.Lock) {
			if ended, err := f.nodes[1].ForceUnlock(brief(f.t), "c", l.Token(), "why"); !ended {
				f.t.Error(err)
			}
		})
	}},
	{"ErrLost ForcedError", func(f *fleet) error {
		return f.lost(mortise.Request{Key: "d"}, func(l *mortise.Lock) {
			if err := f.try(1, resuming{key: "d", token: l.Token()}); err != nil {
				f.t.Error(err)
			}
		})
	}},
	{"ErrNotHeld", func(f *fleet) error { return f.try(0, resuming{key: "k", token: 1}) }},
	{"ErrConflict", func(f *fleet) error {
		_, err := f.nodes[0].Put(brief(f.t), "k", []byte("data"), 7)
		return err
	}},
	{"ErrLost", func(f *fleet) error {
		l := f.lock(0, "e")
		unlock(f.t, l)
		_, err := f.nodes[0].Put(brief(f.t), "k", nil, 0)
		if err != nil {
			return err
		}
		over := f.lock(0, "e")
		if _, err := f.nodes[1].ForceUnlock(brief(f.t), "e", over.Token(), "why"); err != nil {
			return err
		}
		_, err = over.Put(brief(f.t), "k", []byte("late"), 0)
		if as[*mortise.ForcedError](err) {
			return mortise.ErrLost // the holder has learned it before its call
		}
		return err
	}},
	{"ErrKept", func(f *fleet) error {
		l, err := f.nodes[0].LockSticky(brief(f.t), "kept", mortise.StickyOptions{})
		if err != nil {
			return err
		}
		_, err = f.nodes[1].ForceUnlock(brief(f.t), "kept", l.Token(), "why")
		return err
	}},
	{"ErrNoRoom", func(f *fleet) error {
		for range 128 {
			f.session(0, 10*time.Second)
		}
		_, err := f.nodes[0].NewSession(brief(f.t), time.Second)
		return err
	}},
	{"ErrOverloaded", func(f *fleet) error {
		for n := range 30 {
			if err := f.try(1, mortise.Request{Key: fmt.Sprint("many ", n)}); err != nil {
				return err
			}
		}
		return nil
	}},
	{"ErrNotAllowed NotAllowedError", func(f *fleet) error {
		_, err := f.nodes[3].ForceUnlock(brief(f.t), "busy", 1, "a member has no right to it")
		return err
	}},
	// A group of this build has all commands of this build. Package client tests where it comes from.
	{"ErrUnsupported", func(*fleet) error { return fmt.Errorf("%w (lock k)", client.ErrUnsupported) }},
	{"ErrInJeopardy", func(f *fleet) error {
		l, err := f.nodes[2].Acquire(brief(f.t), mortise.Request{Key: "doubt", JeopardyGrace: time.Hour})
		if err != nil {
			return err
		}
		held := f.lock(2, "lease")
		f.isolate(2)
		time.Sleep(3 * time.Second) // more than a TTL
		if err := held.Err(); !errors.Is(err, mortise.ErrLost) || as[*mortise.ForcedError](err) {
			f.t.Errorf("after its lease: %v", err)
		}
		return l.Err()
	}},
	{"ErrNotReady", func(f *fleet) error { return f.try(2, mortise.Request{Key: "k", Try: true}) }},
	{"context", func(f *fleet) error { return f.try(2, mortise.Request{Key: "k"}) }},
	{"ErrLeaving", func(f *fleet) error {
		n := f.nodes[0]
		ctx, cancel := context.WithTimeout(f.t.Context(), 3*time.Second)
		defer cancel()
		done := make(chan struct{})
		go func() { _ = n.Leave(ctx); close(done) }()
		time.Sleep(time.Second)
		err := f.try(0, mortise.Request{Key: "k"})
		<-done
		return err
	}},
	{"ErrClosed", func(f *fleet) error { return f.try(0, mortise.Request{Key: "k"}) }},
}

// Each way in which a call ends has one meaning.
func TestErrorsMeanOneThingEach(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		f.unjudged = true // it leaves and cuts nodes while they hold
		f.alter = func(e *outside.World) { e.Limits.EntriesPerSession = 30 }
		for i := range 4 {
			c := f.config(i, 3)
			withFounders(&c)
			if i == 3 {
				c.Secret = derived(t, "member")
			}
			f.start(i, c)
		}
		f.ready()
		for i, e := range endings {
			err := e.call(f)
			if err == nil {
				t.Errorf("ending %d, %s: no error", i, e.means)
			}
			e.check(t, err)
		}
	})
}

func (e *ending) check(t *testing.T, err error) {
	t.Helper()
	var got []string
	for name, matches := range meanings {
		if matches(err) {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	if means := strings.Join(got, " "); means != e.means {
		t.Errorf("want %q, and it means %q: %v", e.means, means, err)
	}
}

// In TestEveryErrorHasAnEnding an error of the root package is missing in the list, or no call of
// the test ends with it. Only ErrVoteLost has its own test: TestALostVoteIsTold.
func TestEveryErrorHasAnEnding(t *testing.T) {
	files, err := filepath.Glob("../../../*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	seen := map[string]bool{"ErrVoteLost": true}
	for _, e := range endings {
		for _, name := range strings.Fields(e.means) {
			seen[name] = true
		}
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range errorsOf(file) {
			if found++; meanings[name] == nil {
				t.Errorf("%s is not in the list of meanings", name)
			}
			if !seen[name] {
				t.Errorf("%s has no ending", name)
			}
		}
	}
	if found != len(meanings)-1 {
		t.Errorf("the root has %d errors, the list %d", found, len(meanings)-1)
	}
}

// errorsOf returns the exported variables with an error, and the exported types that are errors.
func errorsOf(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, is := s.(*ast.ValueSpec); is && d.Tok == token.VAR && strings.HasPrefix(v.Names[0].Name, "Err") {
					names = append(names, v.Names[0].Name)
				}
			}
		case *ast.FuncDecl:
			if d.Recv == nil || d.Name.Name != "Error" {
				continue
			}
			of := d.Recv.List[0].Type
			if p, is := of.(*ast.StarExpr); is {
				of = p.X
			}
			if name, is := of.(*ast.Ident); is && ast.IsExported(name.Name) {
				names = append(names, name.Name)
			}
		}
	}
	return names
}
