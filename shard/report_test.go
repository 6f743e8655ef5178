package shard_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
	"github.com/mortise-lock/mortise/shard"
)

// refusing is a node that notes the requests for shards, and refuses the first of them.
type refusing struct {
	*mortise.Node
	mu    sync.Mutex // guards the fields below
	fails []error
	asked []mortise.Request
}

func (n *refusing) Acquire(ctx context.Context, r mortise.Request) (*mortise.Lock, error) {
	if strings.HasPrefix(r.Key, "orders/shard/") {
		n.mu.Lock()
		n.asked = append(n.asked, r)
		var err error
		if len(n.fails) > 0 {
			err, n.fails = n.fails[0], n.fails[1:]
		}
		n.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
	return n.Node.Acquire(ctx, r)
}

// TestWhatIsReportedOfAShard compares all reports, with their times, and all requests: one is
// refused, the function fails, ends, is lost, and ends with its context.
func TestWhatIsReportedOfAShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.New(t, 1)
		node := &refusing{Node: c.Node(0), fails: []error{fmt.Errorf("so: %w", mortise.ErrOverloaded)}}
		own, began := errors.New("own"), time.Now()
		var mu sync.Mutex
		var lines []string
		note := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			at := time.Since(began).Truncate(10 * time.Second)
			lines = append(lines, fmt.Sprintf("%v ", at)+fmt.Sprintf(format, args...))
		}
		runs := 0
		ctx, leave := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- shard.Run(ctx, node, shard.Work{Name: "orders", Count: 1, Backoff: 20 * time.Second,
				Report: func(index int, err error) { note("report %d %v", index, err) },
				Run: func(ctx context.Context, s shard.Shard) error {
					runs++
					note("run %d", s.Index)
					switch runs {
					case 1:
						return own
					case 2:
						return nil
					}
					<-ctx.Done()
					return own
				}})
		}()
		time.Sleep(99 * time.Second)
		c.Lose(0)
		time.Sleep(60 * time.Second)
		why := errors.New("enough")
		leave(why)
		if err := <-ended; err != why {
			t.Errorf("Run returns %v", err)
		}
		want := []string{"0s report 0 so: mortise: too many unfinished requests on this instance", "20s run 0",
			"20s report 0 own", "40s run 0", "1m0s run 0", "1m30s report 0 mortise: the lock was lost", "1m30s run 0"}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(lines, want) {
			t.Errorf("noted\n%q\nwant\n%q", lines, want)
		}
		for _, r := range node.asked {
			if request := (mortise.Request{Key: "orders/shard/0", Try: true, Labels: map[string]string{
				"mortise.purpose": "job"}}); !reflect.DeepEqual(r, request) {
				t.Errorf("requested %+v, want %+v", r, request)
			}
		}
	})
}
