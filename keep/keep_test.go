package keep_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/keep"
	"github.com/mortise-lock/mortise/mortisetest"
)

// inFakeTime runs a test in a bubble, with a cluster of n real nodes.
func inFakeTime(t *testing.T, n int, test func(t *testing.T, c *mortisetest.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, mortisetest.New(t, n)) })
}

// kept are the kinds of requests, with the number of instances of three that hold each at once.
var kept = map[string]struct {
	request mortise.Request
	at      int
}{
	"exclusive": {mortise.Request{Key: "k"}, 1},
	"shared":    {mortise.Request{Key: "k", Mode: mortise.Shared}, 3},
	"permits":   {mortise.Request{Key: "k", Mode: mortise.Permits(1, 2)}, 2},
	"keys":      {mortise.Request{Key: "k", Also: []mortise.Part{{Key: "l"}}}, 1},
}

// As many of three instances work as the request permits. When one loses its lock, its function
// ends, and the number is the same again.
func TestALostHoldIsReplaced(t *testing.T) {
	for name, kind := range kept {
		inFakeTime(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
			ctx, stop := context.WithCancelCause(t.Context())
			enough := errors.New("enough")
			var working [3]atomic.Bool
			var runs, lost atomic.Int32
			var all sync.WaitGroup
			for i := range 3 {
				options := keep.Options{Report: func(token mortise.Token, err error) {
					if token != 0 && errors.Is(err, mortise.ErrLost) {
						lost.Add(1)
					}
				}}
				all.Go(func() {
					err := keep.Run(ctx, c.Node(i), kind.request, options, func(ctx context.Context, l *mortise.Lock) error {
						if working[i].Swap(true) {
							t.Errorf("%s: two functions at a time", name)
						}
						runs.Add(1)
						<-ctx.Done()
						working[i].Store(false)
						return nil
					})
					if err != enough {
						t.Errorf("%s: Run returned %v", name, err)
					}
				})
			}
			count := func() (n int) {
				for i := range working {
					if working[i].Load() {
						n++
					}
				}
				return n
			}
			for range 3 {
				c.Until("all that may work", func() bool { return count() == kind.at })
				time.Sleep(time.Second)
				if got := count(); got != kind.at {
					t.Errorf("%s: %d instances work, not %d", name, got, kind.at)
				}
				i := 0
				for !working[i].Load() {
					i++
				}
				before := lost.Load()
				c.Lose(i)
				c.Until("the loss is reported", func() bool { return lost.Load() > before })
			}
			c.Until("all that may work", func() bool { return count() == kind.at })
			stop(enough)
			all.Wait()
			if runs.Load() != int32(kind.at+3) {
				t.Errorf("%s: %d runs, not %d", name, runs.Load(), kind.at+3)
			}
		})
	}
}

func TestTheEndOfRun(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		node, request := c.Node(0), mortise.Request{Key: "k"}
		done := func(context.Context, *mortise.Lock) error { return nil }
		if err := keep.Run(t.Context(), node, request, keep.Options{}, done); err != nil {
			t.Errorf("the work is done: %v", err)
		}
		if err := keep.Run(t.Context(), nil, request, keep.Options{}, done); err == nil {
			t.Error("Run without a node")
		}
		for _, bad := range []mortise.Request{{}, {Key: "k", Mode: mortise.Permits(2, 1)}} {
			err := keep.Run(t.Context(), node, bad, keep.Options{}, done)
			if !errors.Is(err, mortise.ErrBadRequest) && !errors.Is(err, mortise.ErrBadKey) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
		held, err := node.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		err = keep.Run(t.Context(), node, mortise.Request{Key: "k", Try: true}, keep.Options{}, done)
		if !errors.Is(err, mortise.ErrHeld) {
			t.Errorf("a try: %v", err)
		}
		if err := held.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		var ended error
		left := make(chan error)
		running := make(chan bool)
		go func() {
			<-running
			left <- node.Leave(t.Context())
		}()
		err = keep.Run(t.Context(), node, request, keep.Options{}, func(ctx context.Context, l *mortise.Lock) error {
			close(running)
			<-ctx.Done()
			ended = context.Cause(ctx)
			return nil
		})
		if !errors.Is(err, mortise.ErrLeaving) && !errors.Is(err, mortise.ErrClosed) || ended != mortise.ErrLeaving {
			t.Errorf("the node leaves: %v, and the function ended for %v", err, ended)
		}
		if err := <-left; err != nil {
			t.Error(err)
		}
	})
}

func TestAFailureIsReportedAndRepeated(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		broken, runs, began := errors.New("broken"), 0, time.Now()
		var told []string
		options := keep.Options{Backoff: 2 * time.Second, Report: func(token mortise.Token, err error) {
			told = append(told, fmt.Sprint(token != 0, err, time.Since(began).Round(time.Second)))
		}}
		err := keep.Run(t.Context(), c.Node(0), mortise.Request{Key: "k"}, options,
			func(context.Context, *mortise.Lock) error {
				if runs++; runs < 3 {
					return broken
				}
				return nil
			})
		if want := "[true broken 0s true broken 2s]"; err != nil || fmt.Sprint(told) != want ||
			time.Since(began).Round(time.Second) != 6*time.Second {
			t.Errorf("Run returned %v after %v and reported %v, not %s", err, time.Since(began), told, want)
		}
	})
}

// A hold that MaxHold or MaxIdle ends is acquired again, and other requests come between.
func TestMaxHoldLetsOthersIn(t *testing.T) {
	for _, request := range []mortise.Request{{Key: "k", MaxHold: time.Minute}, {Key: "k", MaxIdle: time.Minute}} {
		inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
			var order []string
			var mu sync.Mutex
			var all sync.WaitGroup
			for _, name := range []string{"a", "b"} {
				turns := 0
				all.Go(func() {
					err := keep.Run(t.Context(), c.Node(0), request, keep.Options{},
						func(ctx context.Context, l *mortise.Lock) error {
							mu.Lock()
							order = append(order, name)
							mu.Unlock()
							if turns++; turns == 3 {
								return nil
							}
							<-ctx.Done()
							return ctx.Err()
						})
					if err != nil {
						t.Error(err)
					}
				})
				time.Sleep(time.Second)
			}
			all.Wait()
			if got := strings.Join(order, ""); got != "ababab" {
				t.Errorf("%+v: worked in the order %s", request, got)
			}
		})
	}
}

func TestALongHoldSaysThatItIsOne(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		own := map[string]string{"team": "billing"}
		for _, each := range []struct {
			request mortise.Request
			lasting bool
		}{
			{mortise.Request{Key: "k"}, true},
			{mortise.Request{Key: "k", Value: strings.Repeat("v", 700)}, true},
			{mortise.Request{Key: "k", Value: strings.Repeat("v", 1024)}, false},
			{mortise.Request{Key: "k", Labels: own}, false},
		} {
			err := keep.Run(t.Context(), c.Node(0), each.request, keep.Options{},
				func(ctx context.Context, l *mortise.Lock) error {
					info, err := c.Node(0).Peek(ctx, "k")
					if err == nil && shown.Lasting(info.Queue[0].Labels) != each.lasting {
						t.Errorf("%+v has labels %v", each.request, info.Queue[0].Labels)
					}
					return err
				})
			if err != nil {
				t.Error(err)
			}
		}
		if len(own) != 1 {
			t.Errorf("the labels of the caller have changed: %v", own)
		}
	})
}
