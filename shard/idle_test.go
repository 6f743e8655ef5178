package shard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/mortisetest"
	"github.com/mortise-lock/mortise/shard"
)

// TestFunctionsThatHangAgainAndAgain lets each function of a shard hang, on the only instance. The
// first one is followed at once, and each further one after one Backoff more. Each is reported when
// it hangs. Run returns only when all have returned.
func TestFunctionsThatHangAgainAndAgain(t *testing.T) {
	const idle, backoff, hangs = 10 * time.Second, 20 * time.Second, 4
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.New(t, 1)
		goOn, begun, reports := make(chan struct{}), make(chan shard.Shard, 100), make(chan error, 100)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- shard.Run(ctx, c.Node(0), shard.Work{Name: "orders", Count: 1, MaxIdle: idle, Backoff: backoff,
				Report: func(_ int, err error) { reports <- err },
				Run: func(ctx context.Context, s shard.Shard) error {
					begun <- s
					<-goOn
					return nil
				}})
		}()
		last := <-begun
		for i := range hangs {
			began := time.Now()
			var next shard.Shard
			select {
			case next = <-begun:
			case <-time.After(10 * time.Minute):
				t.Errorf("after function %d, no other begins", i)
				stop()
				close(goOn)
				<-ended
				return
			}
			least := idle + time.Duration(i)*backoff
			most := least + idle/4 + 100*time.Millisecond
			if i > 0 {
				most += 10 * time.Second // it looks again every few seconds
			}
			if took := time.Since(began); took < least || took > most || next.Token <= last.Token {
				t.Errorf("after function %d: %+v after %+v and %v, want %v to %v", i, next, last, took, least, most)
			}
			if err := <-reports; !errors.Is(err, mortise.ErrLost) || !strings.Contains(err.Error(), "called Beat") {
				t.Errorf("reported %v", err)
			}
			last = next
		}
		stop()
		time.Sleep(2 * time.Minute)
		if len(begun)+len(ended) > 0 {
			t.Errorf("%d have begun and %d Runs have ended after the end of the context", len(begun), len(ended))
		}
		close(goOn)
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returns %v", err)
		}
	})
}

// A function that ignores the end of its context, and does not beat either, keeps its shard for
// MaxIdle. If it beats, it keeps its shard.
func TestAFunctionThatIgnoresItsEndKeepsItsShardWhileItBeats(t *testing.T) {
	slow.UnderRace(t)
	const idle = 20 * time.Second
	for name, beats := range map[string]bool{"beats": true, "hangs": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := mortisetest.New(t, 2), newStage(t)
				free := make(chan struct{})
				stubborn := func(ctx context.Context, sh shard.Shard) error {
					s.enter("a", sh)
					hangs := false
					for {
						select {
						case <-free:
							if !hangs {
								s.exit(sh)
							}
							return nil
						case <-time.After(idle / 2):
						}
						if ctx.Err() == nil || beats {
							mortise.Beat(ctx)
						} else if !hangs {
							hangs = true
							s.exit(sh) // the next owner may enter
						}
					}
				}
				a := s.run(c.Node(0), "a", shard.Work{Count: 2, Run: stubborn, MaxIdle: idle})
				time.Sleep(10 * idle)
				s.wants("a:2")
				b := s.run(c.Node(1), "b", shard.Work{Count: 2})
				time.Sleep(10 * idle)
				if each, _ := s.counts(); (each["b"] == 0) != beats {
					t.Errorf("the shards are at %v", each)
				}
				close(free)
				for _, in := range []instance{a, b} {
					in.leave(nil)
					<-in.ended
				}
			})
		})
	}
}
