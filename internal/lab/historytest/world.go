package historytest

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Options describe the history to generate. All chances are per call.
type Options struct {
	Seed    uint64
	Calls   int
	Callers int
	Keys    int
	Try     float64 // chance that a call is a try request, which never waits
	Cancel  float64 // chance that a waiting call is cancelled
	Crash   float64 // chance that the process dies during the call
	Lose    float64 // chance that the call holds until its lease is over
	Share   float64 // chance of a shared request
	Permits float64 // chance that an unshared request takes one or two of three permits
	Several float64 // chance of a request for several keys
	Sticky  float64 // chance that an exclusive request for one key, without Try, is sticky

	Downgrade float64 // chance that the holder of an exclusive lock makes it shared
}

const (
	us    = int64(1000)
	ms    = 1000 * us
	group = 0x1f
	term  = 1
)

type world struct {
	rng     *rand.Rand
	options Options
	now     int64
	order   int
	queue   queue
	events  []history.Event
	streams int
	calls   int

	log     [][]byte
	voters  []*voter
	waiting map[request]func(lockfsm.Change) // receives what other commands change
}

type request struct {
	session lockfsm.SessionID
	number  lockfsm.Number
}

type timed struct {
	at    int64
	order int
	do    func()
}

type queue []timed

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(timed)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func (w *world) after(d int64, do func()) {
	w.order++
	heap.Push(&w.queue, timed{w.now + d, w.order, do})
}

func (w *world) upTo(d int64) int64     { return 1 + w.rng.Int64N(d) }
func (w *world) chance(p float64) bool  { return w.rng.Float64() < p }
func (w *world) record(e history.Event) { e.At = w.now; w.events = append(w.events, e) }
func (w *world) stream() int            { w.streams++; return w.streams }

// voter applies the log at its own speed. Voter 0 leads.
type voter struct {
	machine *lockfsm.Machine
	trail   *history.Trail
	applied int
	busy    int64
}

func (w *world) join(name string, m *lockfsm.Machine, applied int) {
	stream := w.stream()
	v := &voter{machine: m, applied: applied}
	v.trail = history.NewTrail(group, func(e history.Event) {
		e.Node, e.Stream = name, stream
		w.record(e)
	})
	v.trail.Start(uint64(applied), m)
	w.voters = append(w.voters, v)
}

func (w *world) lateVoter() {
	from := w.voters[1]
	from.trail.Mark()
	m, err := lockfsm.Restore(from.machine.Snapshot(nil))
	if err != nil {
		panic(err)
	}
	w.join("voter-2", m, from.applied)
	for late := w.voters[2]; len(w.log) > late.applied; {
		w.apply(late, nil)
	}
}

// commit appends a command to the log. The leader applies it at once, and the others later.
func (w *world) commit(c lockfsm.Command, done func(lockfsm.Result)) {
	w.log = append(w.log, c.Append(nil))
	w.apply(w.voters[0], func(r lockfsm.Result) {
		for _, f := range r.Fired {
			if told := w.waiting[request{f.Session, f.Number}]; told != nil && (f.Token != 0 || f.Held != nil) {
				if f.Held != nil {
					holder := *f.Held
					f.Held = &holder
				}
				w.after(w.upTo(300*us), func() { told(f) })
			}
		}
		if done != nil {
			if r.Holder != nil {
				holder := *r.Holder
				r.Holder = &holder
			}
			r.States, r.Fired = nil, nil
			done(r)
		}
	})
	for _, v := range w.voters[1:] {
		v.busy = max(v.busy, w.now) + w.upTo(2*ms)
		w.after(v.busy-w.now, func() {
			if v.applied < len(w.log) {
				w.apply(v, nil)
			}
		})
	}
}

func (w *world) apply(v *voter, each func(lockfsm.Result)) {
	index := uint64(v.applied + 1)
	batch := w.log[v.applied]
	v.applied++
	v.trail.Entry(index, batch)
	v.machine.ApplyEntry(index, term, slices.Clone(batch), func(r *lockfsm.Result) {
		v.trail.Result(*r, v.machine)
		if each != nil {
			each(*r)
		}
	})
}

func (w *world) nonce() (n lockfsm.Nonce) {
	binary.LittleEndian.PutUint64(n[:], w.rng.Uint64()|1)
	return n
}

// draw returns a random request. If Share, Permits or Several is zero, that option draws no
// random number, so that it does not change the history of a seed.
func (w *world) draw() lockfsm.Command {
	a := lockfsm.Command{Kind: lockfsm.Acquire, Key: w.key(w.rng.IntN(w.options.Keys)), Try: w.chance(w.options.Try)}
	switch o := w.options; {
	case o.Share > 0 && w.chance(o.Share):
		a.Mode = lockfsm.ModeIS
	case o.Permits > 0 && w.chance(o.Permits):
		a.Mode, a.Permits, a.Of = lockfsm.ModePermits, 1+uint32(w.rng.IntN(2)), 3
	}
	if w.options.Several > 0 && w.chance(w.options.Several) {
		keys := w.rng.Perm(w.options.Keys)[:2+w.rng.IntN(w.options.Keys-1)]
		slices.Sort(keys)
		a.Key = w.key(keys[0])
		for _, k := range keys[1:] {
			a.Keys = append(a.Keys, w.key(k))
		}
	}
	if w.options.Sticky > 0 && !a.Try && a.Mode == lockfsm.ModeX && len(a.Keys) == 0 && w.chance(w.options.Sticky) {
		a.Sticky = true
	}
	return a
}

func (w *world) key(i int) string { return fmt.Sprintf("key-%d", i) }
