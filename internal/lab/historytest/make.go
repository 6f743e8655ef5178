package historytest

import (
	"container/heap"
	"fmt"
	"math/rand/v2"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Make generates a correct history, with streams numbered by node and incarnation.
func Make(o Options) []history.Event {
	w := &world{rng: rand.New(rand.NewPCG(o.Seed, 3)), options: o, now: 1000 * ms,
		waiting: map[request]func(lockfsm.Change){}}
	charter := lockfsm.Charter{Group: group, FoundedUnixMS: 1_700_000_000_000, Rules: 1, SessionTTL: 1e9,
		Limits: lockfsm.DefaultLimits()}
	for i := range 2 {
		m, err := lockfsm.New(charter)
		if err != nil {
			panic(err)
		}
		w.join(fmt.Sprintf("voter-%d", i), m, 0)
	}
	w.commit(lockfsm.Command{Kind: lockfsm.Born}, nil)
	if o.Sticky > 0 { // tokens can be reserved only when the wall stamp is above the founding time
		w.commit(lockfsm.Command{Kind: lockfsm.Stamp, WallUnixMS: charter.FoundedUnixMS + 60_000}, nil)
	}
	for i := range o.Callers {
		c := &caller{w: w, name: fmt.Sprintf("node-%d", i)}
		w.after(w.upTo(10*ms), c.open)
	}
	if o.Calls > 0 {
		w.after(50*ms, w.lateVoter)
	}
	for len(w.queue) > 0 {
		next := heap.Pop(&w.queue).(timed)
		w.now = next.at
		next.do()
	}
	return w.events
}
