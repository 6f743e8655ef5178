package instance

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
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
		for _, c := range r.n.sessions.Own() {
			r.n.sessions.Drop(c)
		}
		limits.GivenBack(t, limits.Places{
			Limit: maxOwnSessions, Used: func() int { return len(r.n.sessions.Own()) },
			Endings: map[string]func() (func(), error){
				"closed":       r.open(r.n.Drop),
				"closed twice": r.open(func(c *client.Client) { r.n.Drop(c); r.n.Drop(c) }),
				"closed after their client": r.open(func(c *client.Client) {
					c.Close()
					r.n.Drop(c)
				}),
				"closed in another group": r.open(func(c *client.Client) {
					r.n.sessions.Rebind(nil, []byte("r"), nil)
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

// A report of a faulty disk ends with its fault, or when its instance has not repeated it for
// diskReportFor, and not a moment later.
func TestDiskReportsAreGivenBack(t *testing.T) {
	var d diskReports
	now, last := clock.Time(time.Hour), uint64(0)
	open := func(end func(id nodeid.ID)) func() (func(), error) {
		return func() (func(), error) {
			last++
			id := nodeidtest.ID(last)
			d.keep(now, id, &DiskFault{State: DiskFailed})
			if _, kept := d.all(now)[id]; !kept {
				return nil, errors.New("not kept")
			}
			return func() { end(id) }, nil
		}
	}
	limits.GivenBack(t, limits.Places{
		Limit: maxDiskReports, Used: func() int { return len(d.all(now)) },
		Endings: map[string]func() (func(), error){
			"ended":   open(func(id nodeid.ID) { d.keep(now, id, nil) }),
			"expired": open(func(nodeid.ID) { now = now.Add(diskReportFor + 1) }),
		},
	})
	d.keep(now, nodeidtest.ID(1), &DiskFault{State: DiskFailed})
	for after, want := range map[time.Duration]int{0: 1, diskReportFor - 1: 1, diskReportFor: 1} {
		if got := len(d.all(now.Add(after))); got != want {
			t.Errorf("%v after a report, %d are known", after, got)
		}
	}
	if got := len(d.all(now.Add(diskReportFor + 1))); got != 0 {
		t.Errorf("%d reports are known after the end", got)
	}
	if diskReportFor > 3*diskLookEvery+diskAskLimit || diskReportFor < 2*diskLookEvery+diskAskLimit {
		t.Errorf("a report is valid for %v, and repeated every %v", diskReportFor, diskLookEvery)
	}
}
