package sim

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/timeline"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// world is what a run has in common: the time, the scheduled functions, chance, and what is noted.
// All random numbers of a run, except those of raft, come from rng.
type world struct {
	cfg      Config
	rng      *rand.Rand
	source   *rand.PCG     // of rng
	entering *rand.Rand    // of handles
	opening  *rand.Rand    // of sessions that programs open
	now      time.Duration // global time, which no core can read
	due      schedule
	sequence int
	told     int64  // MaxSessionBytes of instances that start now; zero means the default
	calm     bool   // no more faults are caused
	beside   func() // called with each fault
	odds     odds   // of the faults that happen now
	stats    Stats
	names    map[nodeid.ID]string     // machine of each instance
	keys     map[nodeid.ID]nodeid.Key // of instances with run directories
	quiet    bool                     // callers make no new calls
	nonce    uint64
	numbers  uint64 // the last number given to a call or to a run of a replica
	streams  int    // number of streams in the recorded history
	clients  int    // number of clients of sessions

	run     hash.Hash64 // hash of all events
	events  int
	notes   []string
	noted   int
	verbose bool
	fault   string
	faultAt time.Duration // in page time

	struck   []Strike
	befallen [chances]int // how often each chance has come true
	line     marks
}

// odds are the chances of the faults that may happen at each message, turn or save.
type odds struct {
	jitter   float64 // a long delay
	repeat   float64 // a frame or a raft message is delivered twice
	drop     float64 // a send fails because its queue is full
	sluggish float64
	brittle  float64
	slowDisk float64
	hungSnap float64
	claim    float64 // the claim of a start comes late or again
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
	source := rand.NewPCG(cfg.Seed, 0x6d6f7274)
	w := &world{cfg: cfg, rng: rand.New(source), source: source,
		line:     marks{Recorder: timeline.Recorder{Off: !cfg.Verbose}},
		entering: rand.New(rand.NewPCG(cfg.Seed, 0x656e746572)),
		opening:  rand.New(rand.NewPCG(cfg.Seed, 0x6f70656e)), run: fnv.New64a(), verbose: cfg.Verbose,
		now: time.Hour, beside: func() {}, names: map[nodeid.ID]string{},
		keys: map[nodeid.ID]nodeid.Key{}}
	return w
}

func (w *world) after(d time.Duration, what func()) {
	w.sequence++
	heap.Push(&w.due, scheduled{at: w.now + max(d, 0), sequence: w.sequence, what: what})
}

// pass executes the scheduled functions until the given time, until done reports true, or until a
// rule is broken. It reports whether done has reported true.
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

// without returns a copy of a list without one of its elements.
func without[T comparable](list []T, one T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(each T) bool { return each == one })
}

func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64(max(b-a, 0))+1))
}

func (w *world) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }

// befalls is chance for a fault at a message, a turn or a save of a machine. Config.Replay may
// leave it out.
func (w *world) befalls(c chance, p float64, at string) bool {
	if !w.chance(p) {
		return false
	}
	w.befallen[c]++
	if !w.cfg.Replay.befalls(c, w.befallen[c]-1) {
		return false
	}
	w.line.Mark(timeline.Late, w.page(), at, "", "%s", chanceNames[c])
	return true
}

// strike causes a fault that draw returns with its name. Config.Replay may leave it out.
func (w *world) strike(draw func() (name string, do func())) {
	number := len(w.struck)
	known := w.cfg.Replay.known(number)
	if known != nil {
		*w.source = known.before
	}
	s := Strike{At: w.page(), before: *w.source}
	name, do := draw()
	if noted := w.noted; w.cfg.Replay.happens(number) {
		w.note("fault: %s", name)
		do()
		w.beside()
		s.Text = w.since(noted)
		w.line.Mark(timeline.Fault, w.page(), networkLane, "", "%s", s.Text)
	}
	if known != nil {
		*w.source = known.after
	}
	s.after = *w.source
	w.struck = append(w.struck, s)
}

// since returns the notes after the given number of notes, without their times.
func (w *world) since(noted int) string {
	if !w.verbose {
		return ""
	}
	var texts []string
	for _, n := range w.notes[max(0, len(w.notes)-(w.noted-noted)):] {
		_, text, _ := strings.Cut(strings.TrimSpace(n), "  ")
		texts = append(texts, strings.TrimPrefix(text, "fault: "))
	}
	return strings.Join(texts, "; ")
}

// page returns the time since the beginning of the run.
func (w *world) page() time.Duration { return w.now - time.Hour }

// loses observes that a message is lost.
func (w *world) loses(from, to, format string, args ...any) {
	w.line.Mark(timeline.Lost, w.page(), from, to, format, args...)
}

func (w *world) id() uint64 { return w.rng.Uint64()>>8 | 1 }

func (w *world) mark(what byte, a, b uint64) {
	var buf [25]byte
	buf[0] = what
	binary.LittleEndian.PutUint64(buf[1:], uint64(w.now))
	binary.LittleEndian.PutUint64(buf[9:], a)
	binary.LittleEndian.PutUint64(buf[17:], b)
	w.run.Write(buf[:])
}

// note adds an event to the run's hash and, if verbose is set, its text to the notes.
func (w *world) note(format string, args ...any) {
	w.noted++
	w.mark('n', uint64(w.noted), 0)
	if !w.verbose {
		return
	}
	if len(w.notes) >= 2*notesKept {
		w.notes = append(w.notes[:0], w.notes[notesKept:]...)
	}
	w.notes = append(w.notes, fmt.Sprintf("%11.6f  ", w.page().Seconds())+fmt.Sprintf(format, args...))
}

// broken reports a broken rule, which ends the run. Only the first one is reported.
func (w *world) broken(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf("at %.6f s: ", w.page().Seconds()) + fmt.Sprintf(format, args...)
		w.faultAt = w.page()
		w.note("BROKEN: %s", w.fault)
	}
}

func (w *world) must(err error) {
	if err != nil {
		w.broken("%v", err)
	}
}

func (w *world) random() founding.Random {
	r := founding.Random{Instance: w.newID(), Group: w.id(), Spread: w.rng.Uint64()}
	for i := range r.Raft {
		r.Raft[i] = w.id()
	}
	return r
}

// newID returns the ID of a new incarnation. If instances have run directories, it has a key.
func (w *world) newID() nodeid.ID {
	n := w.id()
	if !w.cfg.RunDirs {
		return nodeidtest.ID(n)
	}
	key := nodeidtest.Key(n)
	w.keys[key.ID()] = key
	return key.ID()
}

func (w *world) newNonce() (n lockfsm.Nonce) {
	w.nonce++
	for i := range 8 {
		n[i] = byte(w.nonce >> (8 * i))
	}
	n[15] = 1
	return n
}

// opens reports whether programs open sessions.
func (w *world) opens() bool { return w.cfg.Own > 0 && !w.quiet }

func (w *world) spread(d time.Duration) time.Duration {
	return time.Duration(w.opening.Int64N(int64(d) + 1))
}
