package sim

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"slices"
	"time"
)

// world is everything: the time, what is due, and the machines. All randomness of a run, except
// raft's own, comes from its one source.
type world struct {
	cfg      Config
	rng      *rand.Rand
	now      time.Duration // the one true time; no core sees it
	due      schedule
	sequence int
	machines []*machine
	net      network
	watch    *watch
	nemesis  nemesis
	insider  *insider // nil means that all are honest
	told     int64    // MaxSessionBytes of the instances that start from now on. Zero means the default
	calm     bool     // all trouble is over, for good
	quiet    bool     // callers make no new calls
	nonce    uint64
	numbers  uint64 // of calls and of runs of replicas
	streams  int    // of the recorded history

	run     hash.Hash64 // everything that has happened
	events  int
	notes   []string // the last ones
	noted   int
	verbose bool
	fault   string
}

type scheduled struct {
	at       time.Duration
	sequence int
	what     func()
}

type schedule []scheduled

func (s schedule) Len() int { return len(s) }
func (s schedule) Less(i, j int) bool {
	return s[i].at < s[j].at || s[i].at == s[j].at && s[i].sequence < s[j].sequence
}
func (s schedule) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *schedule) Push(h any)   { *s = append(*s, h.(scheduled)) }
func (s *schedule) Pop() any {
	last := len(*s) - 1
	h := (*s)[last]
	(*s)[last].what = nil
	*s = (*s)[:last]
	return h
}

const notesKept = 4000

func newWorld(cfg Config) *world {
	w := &world{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x6d6f7274)), run: fnv.New64a(), verbose: cfg.Verbose,
		now: time.Hour}
	w.net = newNetwork(w)
	w.watch = newWatch(w)
	for i := range cfg.Machines {
		w.machines = append(w.machines, newMachine(w, i))
	}
	if cfg.Insider {
		w.infiltrate()
	}
	return w
}

func (w *world) after(d time.Duration, what func()) {
	w.sequence++
	heap.Push(&w.due, scheduled{at: w.now + max(d, 0), sequence: w.sequence, what: what})
}

// pass lets time pass until then, or until done reports true, or a rule is broken.
func (w *world) pass(until time.Duration, done func() bool) bool {
	for w.due.Len() > 0 && w.due[0].at <= until && w.fault == "" {
		h := heap.Pop(&w.due).(scheduled)
		w.now = h.at
		w.events++
		h.what()
		if done != nil && done() {
			return true
		}
	}
	if w.fault == "" {
		w.now = max(w.now, until)
	}
	return false
}

func (w *world) procs() iter.Seq[*proc] {
	return func(yield func(*proc) bool) {
		for _, m := range w.machines {
			if m.proc != nil && !yield(m.proc) {
				return
			}
		}
	}
}

func (w *world) replicas() iter.Seq[*ownReplica] {
	return func(yield func(*ownReplica) bool) {
		for p := range w.procs() {
			if p.replica != nil && !yield(p.replica) {
				return
			}
		}
	}
}

// leader returns the leading replica with the highest term, or nil.
func (w *world) leader() (best *ownReplica) {
	for r := range w.replicas() {
		if role := r.Role(); role.Leading && (best == nil || role.Term > best.Role().Term) {
			best = r
		}
	}
	return best
}

// without returns a list without one of its elements. It does not change the list, which may be
// iterated over.
func without[T comparable](list []T, one T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(each T) bool { return each == one })
}

func (w *world) any() *machine { return w.machines[w.rng.IntN(len(w.machines))] }

func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64(max(b-a, 0))+1))
}

func (w *world) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }

func (w *world) id() uint64 { return w.rng.Uint64()>>8 | 1 }

// mark adds an event to the run's hash, without a note.
func (w *world) mark(what byte, a, b uint64) {
	var buf [25]byte
	buf[0] = what
	binary.LittleEndian.PutUint64(buf[1:], uint64(w.now))
	binary.LittleEndian.PutUint64(buf[9:], a)
	binary.LittleEndian.PutUint64(buf[17:], b)
	w.run.Write(buf[:])
}

// note adds an event to the hash and to the notes. Its text is made only if it will be read: a
// failing seed is run again.
func (w *world) note(format string, args ...any) {
	w.noted++
	w.mark('n', uint64(w.noted), 0)
	if !w.verbose {
		return
	}
	if len(w.notes) >= 2*notesKept {
		w.notes = append(w.notes[:0], w.notes[notesKept:]...)
	}
	w.notes = append(w.notes, fmt.Sprintf("%11.6f  ", (w.now-time.Hour).Seconds())+fmt.Sprintf(format, args...))
}

// broken ends the run: a rule does not hold. Only the first one counts.
func (w *world) broken(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf("at %.6f s: ", (w.now-time.Hour).Seconds()) + fmt.Sprintf(format, args...)
		w.note("BROKEN: %s", w.fault)
	}
}

func (w *world) must(err error) {
	if err != nil {
		w.broken("%v", err)
	}
}
