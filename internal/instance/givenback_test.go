package instance

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/limits"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session/client"
)

func (r *rig) open(end func(*client.Client)) func() (func(), error) {
	return func() (func(), error) {
		c, err := r.n.Open(time.Second)
		return func() { end(c) }, err
	}
}

// Sessions of the user's own are given back, also those whose client has ended by itself and those
// that are closed twice.
func TestSessionsAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		r.n.sessions.more = nil
		limits.GivenBack(t, limits.Places{
			Limit: maxOwnSessions, Used: func() int { return len(r.n.sessions.own()) },
			Endings: map[string]func() (func(), error){
				"closed":       r.open(r.n.Drop),
				"closed twice": r.open(func(c *client.Client) { r.n.Drop(c); r.n.Drop(c) }),
				"closed after their client": r.open(func(c *client.Client) {
					c.Close()
					r.n.Drop(c)
				}),
				"closed in another group": r.open(func(c *client.Client) {
					r.n.sessions.rebind(nil, []byte("r"), nil)
					r.n.Drop(c)
				}),
			},
		})
	})
}

// A question gives its place back however its asker ends.
func TestQuestionsAreGivenBack(t *testing.T) {
	for name, op := range map[string]replica.Op{"questions": replica.OpNames, "watches": replica.OpWatch} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { questionsAreGivenBack(t, op) })
		})
	}
}

func questionsAreGivenBack(t *testing.T, op replica.Op) {
	r := newRig(t)
	defer r.end()
	r.leading()
	ask := func(end func(cancel context.CancelFunc)) func() (func(), error) {
		return func() (func(), error) {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			own := r.voted()
			go func() {
				_, err := own.answer(ctx, replica.Question{Op: op})
				done <- err
			}()
			synctest.Wait()
			select {
			case err := <-done:
				cancel()
				return nil, err
			default:
				return func() {
					end(cancel)
					cancel()
					<-done
				}, nil
			}
		}
	}
	limits.GivenBack(t, limits.Places{Endings: map[string]func() (func(), error){
		"canceled": ask(func(cancel context.CancelFunc) { cancel() }),
		"ended by a new leader": ask(func(context.CancelFunc) {
			r.voted().core.Role(raftlog.Role{Term: 6, Leader: 2})
			r.voted().core.Role(raftlog.Role{Term: 7, Leader: 1, Leading: true})
		}),
		"left without an answer": ask(func(context.CancelFunc) { time.Sleep(2 * replica.WatchTime) }),
	}})
	r.voted().core.Role(raftlog.Role{Term: 8, Leader: 2})
	for range 1000 { // more than any limit
		if _, err := r.voted().answer(t.Context(), replica.Question{Op: op}); !errors.Is(err, replica.ErrNoLead) {
			t.Fatalf("a replica that does not lead answers a question with %v", err)
		}
	}
	r.voted().core.Role(raftlog.Role{Term: 9, Leader: 1, Leading: true})
	end, err := ask(func(context.CancelFunc) {})()
	if err != nil {
		t.Fatalf("no question is left after the refused ones: %v", err)
	}
	end()
}
