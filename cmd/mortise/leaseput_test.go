package main

import (
	"context"
	"errors"
	"testing"

	"github.com/mortise-lock/mortise"
)

// grantedLock counts how often it is given back.
type grantedLock struct {
	holding
	back *int
}

func (l grantedLock) Token() mortise.Token { return 7 }
func (l grantedLock) Err() error           { return nil }
func (l grantedLock) UnlockSoon() error {
	*l.back++
	return nil
}

// TestAGrantHasAClientOrIsGivenBack ends the lease, its client's request, both or neither, before
// and while a lock is acquired, with and without an ID of the request. A lock that is granted then
// is with a lease that lives, and its client is told, or it is given back once.
func TestAGrantHasAClientOrIsGivenBack(t *testing.T) {
	failed := errors.New("not granted")
	for _, end := range []string{"", "client", "lease", "client and lease"} {
		for _, before := range []bool{false, true} {
			for _, grants := range []bool{false, true} {
				for _, id := range []string{"", "q1"} {
					ls, back := newLeases(nil), 0
					l, err := ls.open("x", "one", 0)
					if err != nil {
						t.Fatal(err)
					}
					ctx, gone := context.WithCancel(t.Context())
					if id != "" {
						ctx = context.WithValue(ctx, requestKey{}, request{id: id})
					}
					ends := func() {
						if end == "client" || end == "client and lease" {
							gone()
						}
						if end == "lease" || end == "client and lease" {
							ls.drop(l.id, "")
						}
					}
					if before {
						ends()
					}
					lock, err := ls.take(ctx, nil, l.id, func(context.Context) (holding, error) {
						if !before {
							ends()
						}
						if !grants {
							return nil, failed
						}
						return grantedLock{back: &back}, nil
					})
					ls.mu.Lock()
					kept := len(l.locks)
					ls.mu.Unlock()
					told := err == nil && lock != nil
					if want := grants && end == ""; told != want || kept > 0 != want || want && back != 0 || back > 1 ||
						!want && err == nil {
						t.Errorf("end of %q before: %v, granted: %v, ID %q: told %v (%v), kept %d, given back %d times",
							end, before, grants, id, told, err, kept, back)
					}
					gone()
				}
			}
		}
	}
}
