package client

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
)

// TestAHoldIncludesWhatItsGrantSays resumes a hold. It includes nothing until its grant is known,
// and then what the grant says. The grant of a request that resumes nothing says nothing.
func TestAHoldIncludesWhatItsGrantSays(t *testing.T) {
	told := lockfsm.Grant{Key: "a", Keys: []string{"k"}, Permits: 1, Value: []byte("v"), Delay: time.Minute}
	asked := lockfsm.Grant{Key: "k", Delay: time.Second}
	for _, c := range []struct {
		resume lockfsm.Token
		told   *lockfsm.Grant
		want   lockfsm.Grant
	}{
		{500, &told, told}, {500, nil, lockfsm.Grant{}}, {0, nil, asked}, {0, &told, asked},
	} {
		b := newBench(t)
		b.attach()
		r := &Request{Key: "k", Terms: &Terms{Resume: c.resume, Delay: time.Second}}
		b.core.Acquire(b.now, r)
		b.turn()
		if c.resume != 0 && !reflect.DeepEqual(r.Grant(), lockfsm.Grant{}) {
			t.Errorf("before its grant it includes %+v", r.Grant())
		}
		state := b.state(1, lockfsm.Granted, 600)
		state.Grant = c.told
		b.reply(nodeidtest.ID(1), state)
		b.turn()
		b.outcome(r, OutcomeGranted, nil)
		if got := r.Grant(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("resumes %d, told %+v: it includes %+v, want %+v", c.resume, c.told, got, c.want)
		}
	}
}

// TestEveryAnswerNamesTheGrant resumes a hold that was made shared, by its second key. The client
// learns of the grant from the answer to its request, or from the answer to an Attach.
func TestEveryAnswerNamesTheGrant(t *testing.T) {
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2, nodeidtest.ID(1))
			defer w.close()
			w.elect(nodeidtest.ID(1))
			w.lock(nodeidtest.ID(101), "other")
			first, err := w.ask(nodeidtest.ID(100), Request{Key: "x", Terms: &Terms{Keys: []string{"y"}, Delay: time.Hour,
				Value: []byte("v")}})
			if err != nil {
				t.Fatal(err)
			}
			g := first.Grant()
			if err := first.Downgrade(t.Context(), g.Readers(false)); err != nil {
				t.Fatal(err)
			}
			if g := first.Grant(); !g.Shared() {
				t.Errorf("behind its downgrade it includes %+v", g)
			}
			dropped := false
			drop := func(what string) bool {
				info, _ := w.machine.Inspect("x", 1)
				if what != "reply" || dropped || info.Held == 0 || info.Queue[0].Token == first.Token() {
					return false
				}
				dropped = true
				return true
			}
			if lost {
				w.refuse.Store(&drop)
			}
			h, err := w.ask(nodeidtest.ID(101), Request{Key: "y", Terms: &Terms{Resume: first.Token()}})
			if err != nil || dropped != lost {
				t.Fatal(err, dropped)
			}
			want := lockfsm.Grant{Key: "x", Keys: []string{"y"}, Permits: 1, Delay: time.Hour, Value: []byte("v")}
			if got := h.Grant(); !reflect.DeepEqual(got, want) || h.Key() != "x" {
				t.Errorf("the answer is lost: %v: %q includes %+v", lost, h.Key(), got)
			}
		})
	}
}
