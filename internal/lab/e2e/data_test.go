package e2e

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestPutComparesAndSets increments a counter on all instances while a leader is lost. No increment
// may be lost or made twice.
func TestPutComparesAndSets(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 5)
		lead := f.leader()
		var all sync.WaitGroup
		conflicts := make(chan struct{}, 100_000)
		for i := range 8 {
			n := f.nodes[(lead+1+i%4)%5]
			all.Go(func() {
				for range 25 {
					for done := false; !done; {
						data, revision, err := n.Get(t.Context(), "count")
						if err != nil {
							t.Error(err)
							return
						}
						count, _ := strconv.Atoi(string(data))
						next, err := n.Put(t.Context(), "count", strconv.AppendInt(nil, int64(count+1), 10), revision)
						switch {
						case err == nil && next > revision:
							done = true
						case errors.Is(err, mortise.ErrConflict):
							conflicts <- struct{}{}
						default:
							t.Errorf("%d, %v", next, err)
							return
						}
					}
				}
			})
		}
		all.Go(func() { f.crash(lead) })
		all.Wait()
		data, revision, err := f.nodes[(lead+1)%5].Get(t.Context(), "count")
		if string(data) != "200" || revision == 0 || err != nil || len(conflicts) == 0 {
			t.Errorf("counted %s, revision %d, %v; %d conflicts", data, revision, err, len(conflicts))
		}
		t.Logf("%d conflicts", len(conflicts))
	})
}

func TestDataStaysAndGoes(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 4)
		n := f.nodes[f.follower()]
		ctx := brief(t)
		if data, revision, err := n.Get(ctx, "k"); data != nil || revision != 0 || err != nil {
			t.Errorf("%q, %d, %v", data, revision, err)
		}
		first, err := n.Put(ctx, "k", []byte("v1"), 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Put(ctx, "k", []byte("v2"), 0); !errors.Is(err, mortise.ErrConflict) ||
			!strings.Contains(err.Error(), "is at revision") {
			t.Errorf("%v", err)
		}
		l := f.lock(0, "k")
		if info := f.peek(1, "k"); string(info.Data) != "v1" || info.Revision != first || info.Held != 1 {
			t.Errorf("%+v", info)
		}
		unlock(t, l)
		f.crash(f.leader())
		if data, revision, err := n.Get(ctx, "k"); string(data) != "v1" || revision != first || err != nil {
			t.Errorf("%q, %d, %v", data, revision, err)
		}
		if revision, err := n.Put(ctx, "k", nil, first); revision != 0 || err != nil {
			t.Errorf("%d, %v", revision, err)
		}
		// This repeats the first call, as if its answer had been lost.
		if revision, err := n.Put(ctx, "k", nil, first); revision != 0 || err != nil {
			t.Errorf("%d, %v", revision, err)
		}
		if info, err := n.Peek(ctx, "k"); info.Revision != 0 || err != nil {
			t.Errorf("%+v, %v", info, err)
		}
		if _, err := n.Put(ctx, "k", bytes.Repeat([]byte("x"), 4097), 0); !errors.Is(err, mortise.ErrBadRequest) {
			t.Errorf("%v", err)
		}
		if _, err := n.Put(ctx, "a\nb", []byte("x"), 0); !errors.Is(err, mortise.ErrBadKey) {
			t.Errorf("%v", err)
		}
		f.nothingLeft()
	})
}

// TestDataIsTheCallersOwn checks that a caller may change a returned value.
func TestDataIsTheCallersOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		for _, n := range f.nodes {
			ctx, key := brief(t), "k/"+n.config.Name
			revision, err := n.Put(ctx, key, []byte("right"), 0)
			if err != nil {
				t.Fatal(err)
			}
			told := map[string][]byte{}
			told["Get"], _, _ = n.Get(ctx, key)
			info, _ := n.Peek(ctx, key)
			told["Peek"] = info.Data
			for e, err := range n.Watch(ctx, key, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Kind == mortise.EventCurrent && told["Watch"] != nil {
					break
				}
				if e.Kind == mortise.EventCurrent {
					if _, err := n.Put(ctx, key, []byte("right"), revision); err != nil {
						t.Fatal(err)
					}
				} else if e.Kind == mortise.EventData && told["reset"] == nil {
					told["reset"] = e.Data
				} else if e.Kind == mortise.EventData {
					told["Watch"] = e.Data
				}
			}
			for from, data := range told {
				copy(data, "wrong")
				if now, _, err := f.nodes[0].Get(ctx, key); string(now) != "right" || err != nil {
					t.Fatalf("what %s has told was changed: the group has %q, %v", from, now, err)
				}
			}
		}
	})
}
