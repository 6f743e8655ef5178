package main

import (
	"cmp"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/exp/trace"
)

// What goroutines write into the trace of the budget.
const (
	sayMember    = "bench-member" // with its number: this goroutine begins a member
	sayLock      = "bench-lock"   // with one of the following
	lockCalled   = "called"
	lockHeld     = "held"
	lockUnlocked = "unlocked"
)

const noMember = -1

// routine is what the trace says of one goroutine.
type routine struct {
	id     trace.GoID
	member int // that it belongs to, by the goroutine that began it, or noMember
	name   string
	wakes  []wake
	calls  []trace.Time // of the system
	ran    []stretch
	since  trace.Time // of its present stretch; zero while it does not run
}

// wake is the end of a wait.
type wake struct {
	at trace.Time
	by trace.GoID // NoGoroutine: the network or a timer
}

type stretch struct{ from, to trace.Time }

// recording is what a trace says of the last pairs.
type recording struct {
	routines map[trace.GoID]*routine
	sends    []send    // in the order of time
	locks    []stretch // from the call of Lock to its return, of the pairs that count
	pairs    []stretch // from the call of Lock to the return of Unlock
	caller   trace.GoID
}

// send is a system call that writes.
type send struct {
	at trace.Time
	by *routine
}

// readTrace reads a trace in which the last pairs count.
func readTrace(from io.Reader, pairs int) (*recording, error) {
	r := &recording{routines: map[trace.GoID]*routine{}}
	reader, err := trace.NewReader(from)
	if err != nil {
		return nil, err
	}
	for {
		e, err := reader.ReadEvent()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch e.Kind() {
		case trace.EventLog:
			r.said(e)
		case trace.EventStateTransition:
			if e.StateTransition().Resource.Kind == trace.ResourceGoroutine {
				r.changed(e)
			}
		}
	}
	if len(r.pairs) < pairs || len(r.locks) < pairs {
		return nil, errors.New("the trace has not all pairs")
	}
	r.locks, r.pairs = r.locks[len(r.locks)-pairs:], r.pairs[len(r.pairs)-pairs:]
	return r, nil
}

func (r *recording) routine(id trace.GoID) *routine {
	g := r.routines[id]
	if g == nil {
		g = &routine{id: id, member: noMember}
		r.routines[id] = g
	}
	return g
}

func (r *recording) said(e trace.Event) {
	switch l := e.Log(); l.Category {
	case sayMember:
		r.routine(e.Goroutine()).member, _ = strconv.Atoi(l.Message)
	case sayLock:
		r.caller = e.Goroutine()
		switch l.Message {
		case lockCalled:
			r.locks = append(r.locks, stretch{from: e.Time()})
			r.pairs = append(r.pairs, stretch{from: e.Time()})
		case lockHeld:
			r.locks[len(r.locks)-1].to = e.Time()
		case lockUnlocked:
			r.pairs[len(r.pairs)-1].to = e.Time()
		}
	}
}

func (r *recording) changed(e trace.Event) {
	change := e.StateTransition()
	g := r.routine(change.Resource.Goroutine())
	from, to := change.Goroutine()
	if from == trace.GoNotExist {
		if by := e.Goroutine(); by != trace.NoGoroutine {
			g.member = r.routine(by).member
		}
	}
	if to == trace.GoWaiting {
		g.name = outermost(change.Stack)
	}
	if from == trace.GoWaiting && to == trace.GoRunnable {
		g.wakes = append(g.wakes, wake{e.Time(), e.Goroutine()})
	}
	if from == trace.GoRunning && to == trace.GoSyscall {
		g.calls = append(g.calls, e.Time())
		if writes(change.Stack) {
			r.sends = append(r.sends, send{e.Time(), g})
		}
	}
	switch {
	case to.Executing() && g.since == 0:
		g.since = e.Time()
	case !to.Executing() && g.since != 0:
		g.ran = append(g.ran, stretch{g.since, e.Time()})
		g.since = 0
	}
}

// outermost returns the function that a goroutine runs, from its stack: the outermost one with a
// name in the package in which the goroutine began, or else that with which it began.
func outermost(s trace.Stack) (name string) {
	var frames []string
	for f := range s.Frames() {
		if f.Func != "sync.(*WaitGroup).Go.func1" {
			frames = append(frames, f.Func[strings.LastIndexByte(f.Func, '/')+1:])
		}
	}
	slices.Reverse(frames)
	for _, f := range frames {
		if strings.HasPrefix(f, packageOf(frames[0])) && !unnamed.MatchString(f) {
			return f
		}
	}
	return strings.Join(frames[:min(1, len(frames))], "")
}

func packageOf(function string) string { return function[:strings.IndexByte(function, '.')+1] }

var unnamed = regexp.MustCompile(`\.func\d+(\.\d+)*$`)

// writes reports whether a system call writes to a file or a connection.
func writes(s trace.Stack) bool {
	for f := range s.Frames() {
		if f.Func == "syscall.write" || f.Func == "syscall.writev" || strings.HasSuffix(f.Func, "poll.writev") {
			return true
		}
	}
	return false
}

// lines returns what the goroutines of all members did for each pair, by role and function.
func (r *recording) lines(roles []string) []activity {
	begin, end := r.pairs[0].from, r.pairs[len(r.pairs)-1].to
	inside := func(at trace.Time) bool { return begin <= at && at < end }
	sums := map[[2]string]*activity{}
	for _, g := range r.routines {
		role := r.role(g, roles)
		if role == "" {
			continue
		}
		key := [2]string{role, g.name}
		if sums[key] == nil {
			sums[key] = &activity{role: role, name: r.title(g)}
		}
		l := sums[key]
		for _, w := range g.wakes {
			if inside(w.at) {
				l.wakes++
			}
		}
		for _, at := range g.calls {
			if inside(at) {
				l.calls++
			}
		}
		for _, s := range g.ran {
			l.runs += max(0, min(s.to, end).Sub(max(s.from, begin)))
		}
	}
	var lines []activity
	for _, l := range sums {
		n := len(r.pairs)
		lines = append(lines, activity{l.role, l.name, l.wakes / float64(n), l.calls / float64(n), l.runs / time.Duration(n)})
	}
	slices.SortFunc(lines, func(a, b activity) int {
		return cmp.Or(strings.Compare(a.role, b.role), cmp.Compare(b.runs, a.runs), strings.Compare(a.name, b.name))
	})
	return lines
}

func (r *recording) role(g *routine, roles []string) string {
	switch {
	case g.id == r.caller:
		return "caller"
	case g.member == noMember:
		return ""
	}
	return roles[g.member]
}

func (r *recording) title(g *routine) string {
	if g.id == r.caller {
		return "Lock and Unlock"
	}
	return g.name
}

// ways returns the ways of the locks, the most frequent one first.
func (r *recording) ways(roles []string) []way {
	found := map[string][][]hop{}
	for _, l := range r.locks {
		var name strings.Builder
		hops := r.hops(l, roles)
		for _, h := range hops {
			name.WriteString(h.role + "\n" + h.name + "\n" + h.by + "\n")
		}
		found[name.String()] = append(found[name.String()], hops)
	}
	var all []way
	for _, list := range found {
		w := way{share: float64(len(list)) / float64(len(r.locks)), hops: slices.Clone(list[0])}
		for i := range w.hops {
			times := make([]time.Duration, len(list))
			for j := range list {
				times[j] = list[j][i].took
			}
			w.hops[i].took = medianOf(times)
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b way) int { return cmp.Or(cmp.Compare(b.share, a.share), len(a.hops)-len(b.hops)) })
	return all
}

func medianOf(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func (r *recording) median() time.Duration {
	times := make([]time.Duration, len(r.locks))
	for i, l := range r.locks {
		times[i] = l.to.Sub(l.from)
	}
	return medianOf(times)
}

// hops goes from the return of a Lock back to its call: from each goroutine to the one that woke
// it, and, if that was the network, to the goroutine of another member that wrote last before.
// Only one lock is under way, so the last write is nearly always the one that woke it.
func (r *recording) hops(l stretch, roles []string) []hop {
	var back []hop
	for at, g := l.to, r.routine(r.caller); at > l.from; {
		w, ok := g.wokenBefore(at)
		if !ok || w.at < l.from {
			back = append(back, hop{r.role(g, roles), r.title(g), "ran", at.Sub(l.from)})
			break
		}
		if w.by != trace.NoGoroutine && r.routine(w.by).member == noMember && w.by != r.caller {
			break // by the runtime, such as the garbage collector
		}
		by, next := "a goroutine", (*routine)(nil)
		if w.by != trace.NoGoroutine && w.by != g.id {
			next = r.routine(w.by)
		} else {
			by, next = "the network", r.wroteBefore(w.at, g)
		}
		back = append(back, hop{r.role(g, roles), r.title(g), by, at.Sub(w.at)})
		if next == nil {
			break
		}
		at, g = w.at, next
	}
	slices.Reverse(back)
	return back
}

func (g *routine) wokenBefore(at trace.Time) (wake, bool) {
	i, _ := slices.BinarySearchFunc(g.wakes, at, func(w wake, at trace.Time) int { return cmp.Compare(w.at, at) })
	if i == 0 {
		return wake{}, false
	}
	return g.wakes[i-1], true
}

// wroteBefore returns the goroutine of another member that wrote last before.
func (r *recording) wroteBefore(at trace.Time, g *routine) *routine {
	i, _ := slices.BinarySearchFunc(r.sends, at, func(s send, at trace.Time) int { return cmp.Compare(s.at, at) })
	for i--; i >= 0; i-- {
		if by := r.sends[i].by; by.member != g.member && (by.member != noMember || by.id == r.caller) {
			return by
		}
	}
	return nil
}
