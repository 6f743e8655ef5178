package client

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// TestEachTurnHasTheWholeInbox checks that the counts of the inbox begin at zero in each turn.
// Otherwise the client would soon drop every frame.
func TestEachTurnHasTheWholeInbox(t *testing.T) {
	leader, other := nodeidtest.ID(1), nodeidtest.ID(2)
	for name, row := range map[string]struct {
		from   nodeid.ID
		size   int
		frames int
		taken  int
		cut    bool // whether the stream counts as ended
	}{
		"the leader":             {from: leader, size: inboxBytes*2/3 - inputBytes, frames: 1, taken: 1},
		"the leader, by number":  {from: leader, frames: 1000, taken: 1000},
		"others":                 {from: other, size: otherBytes*2/3 - inputBytes, frames: 1, taken: 1},
		"others, by number":      {from: other, frames: 1000, taken: 1000},
		"too much of the leader": {from: leader, size: inboxBytes*2/3 - inputBytes, frames: 3, taken: 1, cut: true},
		"too much of others":     {from: other, size: otherBytes*2/3 - inputBytes, frames: 3, taken: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Client{wake: make(chan struct{}, 1), core: NewCore(1, worldTTL), config: Config{
				Clock: new(clock.Manual), Random: func([]byte) {},
				Send: func(nodeid.Endpoint, []byte, []byte) error { return nil },
			}}
			frame := make([]byte, row.size)
			for turn := range 5 {
				c.heeded = leader
				for range row.frames {
					c.Receive(row.from, frame)
				}
				taken, cut := 0, 0
				for _, in := range c.inbox {
					switch in.kind {
					case inputReceive:
						taken++
					case inputDown:
						cut++
					}
				}
				if taken != row.taken || (cut == 1) != row.cut || cut > 1 {
					t.Fatalf("turn %d: %d frames of %d are taken in, %d ends of a stream", turn, taken, row.frames, cut)
				}
				if _, open := c.turn(); !open {
					t.Fatal("closed")
				}
				if c.inboxBytes+c.otherBytes != 0 || c.overflown || len(c.inbox)+len(c.spare) != 0 {
					t.Fatalf("turn %d leaves %d and %d bytes, %v", turn, c.inboxBytes, c.otherBytes, c.overflown)
				}
				for _, in := range c.spare[:cap(c.spare)] {
					if !reflect.ValueOf(in).IsZero() {
						t.Fatalf("turn %d still holds what %v sent", turn, in.peer)
					}
				}
			}
		})
	}
}

// TestShellCallsEndThoughAFrameIsRefused checks that waiting calls end soon even if one frame of a
// client, one proposal of a keeper, or one frame of replies is refused.
func TestShellCallsEndThoughAFrameIsRefused(t *testing.T) {
	for _, what := range []string{"send", "propose", "reply"} {
		for n := int64(1); n <= 16; n++ {
			t.Run(fmt.Sprint(what, " ", n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, 3, nodeidtest.ID(1))
					defer w.close()
					var left atomic.Int64
					left.Store(n)
					w.refuse.Store(new(func(which string) bool { return which == what && left.Add(-1) == 0 }))
					w.elect(nodeidtest.ID(1))
					began := time.Now()
					for round := range 3 {
						done := make(chan error, 3)
						for i := range uint64(3) {
							go func() {
								h, err := w.clients[nodeidtest.ID(100+i)].Acquire(context.Background(), "x", false)
								if err == nil {
									err = h.Release(context.Background())
								}
								done <- err
							}()
						}
						for range 3 {
							select {
							case err := <-done:
								if err != nil {
									t.Errorf("round %d: %v", round, err)
								}
							case <-time.After(2 * worldTTL):
								t.Fatalf("round %d: a call has not ended after %v", round, time.Since(began))
							}
						}
					}
					if left.Load() > 0 {
						t.Skip("there are not so many")
					}
					// A client that gets no error would attach again only after two seconds.
					if took := time.Since(began); took >= time.Second {
						t.Errorf("it took %v until all calls had ended: that something was refused is known at once",
							took)
					}
					w.empty()
				})
			})
		}
	}
}
