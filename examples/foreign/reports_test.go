package reports_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"example.com/reports"

	"github.com/mortise-lock/mortise/locker"
	"github.com/mortise-lock/mortise/locker/lockertest"
)

// store is a Store with a fence.
type store struct {
	highest locker.Token
	texts   []string
}

func (s *store) Put(ctx context.Context, name, text string, token locker.Token) error {
	if token < s.highest {
		return fmt.Errorf("token %d is below %d", token, s.highest)
	}
	s.highest, s.texts = token, append(s.texts, name+": "+text)
	return ctx.Err()
}

// A project tests with a Locker in memory, which keeps the contract that a node keeps.
func TestWrite(t *testing.T) {
	lockertest.Run(t, func(*testing.T) locker.Locker { return new(locker.Local) })
	kept := new(store)
	w := reports.Writer{Locks: new(locker.Local), Store: kept}
	if err := errors.Join(w.Write(t.Context(), "daily", "a"), w.Write(t.Context(), "daily", "b")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"daily: a", "daily: b"}; !slices.Equal(kept.texts, want) || kept.highest != 2 {
		t.Errorf("%q, token %d", kept.texts, kept.highest)
	}
}

// The errors of a lock service are known without its module.
func TestABusyService(t *testing.T) {
	for refusal, busy := range map[error]bool{locker.ErrNotReady: true, locker.ErrQueueFull: true,
		locker.ErrOverloaded: true, locker.ErrClosed: false} {
		down := locker.Func(func(context.Context, string, func(context.Context, locker.Token) error) error {
			return fmt.Errorf("%w: in a test", refusal)
		})
		w := reports.Writer{Locks: down, Store: new(store)}
		if err := w.Write(t.Context(), "daily", "a"); !errors.Is(err, refusal) || errors.Is(err, reports.ErrBusy) != busy {
			t.Errorf("%v: %v", refusal, err)
		}
	}
}

// The build list has this module and the interface, and packages are of these two and of Go.
func TestNothingElseIsRequired(t *testing.T) {
	list := func(args ...string) []string {
		t.Helper()
		out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(out))
	}
	const here, face = "example.com/reports", "github.com/mortise-lock/mortise/locker"
	if got := list("-m", "-f", "{{.Path}}", "all"); !slices.Equal(got, []string{here, face}) {
		t.Errorf("the modules are %q", got)
	}
	packages := list("-deps", "-test", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	if len(packages) < 4 {
		t.Errorf("only the packages %q are seen", packages)
	}
	for _, path := range packages {
		if !strings.HasPrefix(path, here) && !strings.HasPrefix(path, face) && !strings.HasPrefix(path, "[") {
			t.Errorf("%s is imported", path)
		}
	}
}
