package client

import (
	"fmt"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

// stayRig is a Stays for tests. The test is its clock, its callers and its group. The rig checks
// the guarantees of stays after each step.
type stayRig struct {
	t        *testing.T
	s        *Stays
	now      clock.Time
	safe     clock.Time
	deadline clock.Time
	rev      lockfsm.Token
	reserves lockfsm.Token              // tokens that a grant reserves
	tokens   map[string]lockfsm.Token   // the last token of each key
	inside   map[string]*StayCaller     // the caller that holds each key
	asked    map[*Request]*rigRequest   // requests that the group knows
	callers  map[*StayCaller]*rigCaller // calls without a final answer, and holds
	begun    int
	sent     []string // commands and news since the last call of did
	leaving  bool
}

type rigRequest struct {
	granted, nested bool
	first, last     lockfsm.Token
	at              clock.Time // of the grant
	recalled        clock.Time
	recalledAfter   int // how many calls had begun before the recall
	passes          int // since the recall
}

type rigCaller struct {
	begun int
	holds bool
	from  *Request
}

const (
	rigTTL  = 6 * time.Second
	rigIdle = time.Second
)

func newStayRig(t *testing.T, limit int) *stayRig {
	r := &stayRig{t: t, s: NewStays(limit, rigIdle), now: clock.Time(time.Hour), rev: 1000, reserves: 100,
		tokens: map[string]lockfsm.Token{}, inside: map[string]*StayCaller{}, asked: map[*Request]*rigRequest{},
		callers: map[*StayCaller]*rigCaller{}}
	r.renewed()
	return r
}

func (r *stayRig) window() Window {
	return Window{Now: r.now, Safe: r.safe, Deadline: r.deadline, TTL: rigTTL}
}

func (r *stayRig) fatal(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf("%v after %q", fmt.Errorf(format, args...), r.sent)
}

// step carries out the output of the stays, and checks it.
func (r *stayRig) step() {
	r.t.Helper()
	for i := range r.s.News {
		r.news(&r.s.News[i])
	}
	for i := range r.s.Commands {
		r.command(&r.s.Commands[i])
	}
	r.s.News, r.s.Commands = r.s.News[:0], nil
	r.check()
}

func (r *stayRig) news(n *StayNews) {
	r.t.Helper()
	l, c := n.Caller, r.callers[n.Caller]
	switch {
	case c == nil:
		r.fatal("news for a caller that has its final answer: %+v", n)
	case n.Granted:
		if c.holds {
			r.fatal("granted twice")
		}
		r.sent = append(r.sent, "granted "+l.Key)
		r.pass(l)
	case n.Wanted:
		if !c.holds {
			r.fatal("%q is wanted, but its caller does not hold it", l.Key)
		}
		r.sent = append(r.sent, "wanted "+l.Key)
	case n.Behind != nil:
		if c.holds {
			r.fatal("a holder waits")
		}
	case n.Lost != c.holds:
		r.fatal("a caller has the wrong news %+v", n)
	default:
		r.sent = append(r.sent, "failed "+l.Key)
		if n.Lost {
			r.sent[len(r.sent)-1] = "lost " + l.Key
			delete(r.inside, l.Key)
		}
		delete(r.callers, l)
	}
}

func (r *stayRig) command(c *StayCommand) {
	r.t.Helper()
	key, q := c.Request.Key, r.asked[c.Request]
	if (q == nil) != (c.Kind == StayAcquire) {
		r.fatal("command %d for a request that the group knows: %v", c.Kind, q != nil)
	}
	switch c.Kind {
	case StayAcquire:
		for other := range r.asked {
			if other.Key == key {
				r.fatal("two requests for %q", key)
			}
		}
		r.asked[c.Request] = &rigRequest{}
		r.sent = append(r.sent, "acquire "+key)
	case StayRelease:
		if l := r.inside[key]; !q.granted || l != nil && r.callers[l].from == c.Request {
			r.fatal("%q is released, granted %v, inside %v", key, q.granted, l)
		}
		delete(r.asked, c.Request)
		r.sent = append(r.sent, "release "+key)
	case StayCancel:
		delete(r.asked, c.Request)
		r.sent = append(r.sent, "cancel "+key)
	case StayInUse:
		if l := r.inside[key]; l == nil || l.token != c.Token || r.callers[l].from != c.Request {
			r.fatal("the answer InUse is wrong: %+v", c)
		}
		r.sent = append(r.sent, fmt.Sprint("in use ", key, " ", c.Place))
	}
}

// pass checks that l may hold the lock now.
func (r *stayRig) pass(l *StayCaller) {
	r.t.Helper()
	c := r.callers[l]
	if r.inside[l.Key] != nil {
		r.fatal("two callers hold %q", l.Key)
	}
	c.holds, c.from = true, r.s.Request(l)
	q := r.asked[c.from]
	switch {
	case q == nil || !q.granted:
		r.fatal("a pass for %q out of a stay that is not granted or was released", l.Key)
	case l.token <= r.tokens[l.Key]:
		r.fatal("token %d after %d", l.token, r.tokens[l.Key])
	case q.last == 0 && l.token != q.first, q.last != 0 && (l.token <= q.first || l.token > q.last):
		r.fatal("token %d of %d to %d", l.token, q.first, q.last)
	case !r.now.Before(r.safe):
		r.fatal("a pass in jeopardy")
	case r.now.Sub(q.at) >= rigTTL:
		r.fatal("a pass with a token that is %v old", r.now.Sub(q.at))
	case q.nested || r.leaving:
		r.fatal("a pass of a stay that must end")
	case q.recalled != 0 && (q.passes >= 16 || c.begun >= q.recalledAfter || r.now.Sub(q.recalled) >= recallTime):
		r.fatal("pass %d, %v after a recall, for call %d, the recall was before call %d", q.passes+1,
			r.now.Sub(q.recalled), c.begun, q.recalledAfter)
	}
	if q.recalled != 0 {
		q.passes++
	}
	r.tokens[l.Key], r.inside[l.Key] = l.token, l
}

func (r *stayRig) lock(key string, try bool) (*StayCaller, StayAnswer) {
	r.t.Helper()
	l := &StayCaller{Key: key, Try: try}
	r.callers[l] = &rigCaller{begun: r.begun}
	r.begun++
	answer := r.s.Lock(r.window(), l)
	switch answer {
	case StayGranted:
		r.pass(l)
	case StayWaits:
		if try {
			r.fatal("a Try waits")
		}
	case StayHeld:
		if in := r.inside[key]; in == nil || in.token != l.token || !r.now.Before(r.deadline) {
			r.fatal("ErrHeld with %d, inside %v", l.token, in)
		}
		delete(r.callers, l)
	case StayOrdinary:
		delete(r.callers, l)
		r.s.Yield(key)
	default:
		delete(r.callers, l)
	}
	r.step()
	return l, answer
}

// take locks a key and fails the test if the answer is another one.
func (r *stayRig) take(key string, want StayAnswer) *StayCaller {
	r.t.Helper()
	l, got := r.lock(key, false)
	if got != want {
		r.fatal("answer %d, want %d", got, want)
	}
	return l
}

func (r *stayRig) unlock(l *StayCaller) {
	r.t.Helper()
	if c := r.callers[l]; c != nil {
		delete(r.inside, l.Key)
		delete(r.callers, l)
	}
	r.s.Unlock(r.window(), l)
	r.step()
}

func (r *stayRig) cancel(l *StayCaller) {
	r.t.Helper()
	if c := r.callers[l]; c != nil && c.holds {
		delete(r.inside, l.Key)
	}
	delete(r.callers, l)
	r.s.Cancel(r.window(), l)
	r.step()
}

// request returns the request for a key that the group knows.
func (r *stayRig) request(key string) *Request {
	for q := range r.asked {
		if q.Key == key {
			return q
		}
	}
	return nil
}

func (r *stayRig) grant(key string) {
	r.t.Helper()
	q := r.request(key)
	g := r.asked[q]
	r.rev++
	g.granted, g.first, g.at = true, r.rev, r.now
	if r.reserves > 0 {
		r.rev += r.reserves
		g.last = r.rev
	}
	r.s.Granted(r.window(), q, g.first, g.last)
	r.step()
}

func (r *stayRig) recall(key string, place lockfsm.Revision) {
	r.t.Helper()
	q := r.request(key)
	if g := r.asked[q]; g.granted && g.recalled == 0 {
		g.recalled, g.recalledAfter = r.now, r.begun
	}
	if place > 0 {
		r.s.Asked(r.window(), q, place)
	} else {
		r.s.Recalled(r.window(), q)
	}
	r.step()
}

func (r *stayRig) lose(key string) {
	r.t.Helper()
	q := r.request(key)
	delete(r.asked, q)
	r.s.Lost(q, ErrLost, LossUnknown)
	r.step()
}

func (r *stayRig) fail(key string) {
	r.t.Helper()
	q := r.request(key)
	delete(r.asked, q)
	r.s.Failed(q, ErrQueueFull)
	r.step()
}

func (r *stayRig) nested(l *StayCaller) {
	r.t.Helper()
	q := r.s.Request(l)
	r.asked[q].nested = true
	r.s.Nested(q)
	r.step()
}

func (r *stayRig) yield(key string) {
	r.t.Helper()
	r.s.Yield(key)
	r.step()
}

func (r *stayRig) leave() {
	r.t.Helper()
	r.leaving = true
	r.s.Leave()
	r.step()
	for q, g := range r.asked { // the core fails the requests
		if !g.granted {
			r.fail(q.Key)
		}
	}
}

func (r *stayRig) renewed() {
	r.t.Helper()
	r.safe, r.deadline = r.now.Add(rigTTL/3*2), r.now.Add(rigTTL-rigTTL/50)
	r.s.Renewed(r.window())
	r.step()
}

func (r *stayRig) tick(d time.Duration) {
	r.t.Helper()
	r.now = r.now.Add(d)
	r.s.Tick(r.now)
	r.step()
}

// did compares the commands and news since the last call with the expected ones.
func (r *stayRig) did(want ...string) {
	r.t.Helper()
	if got := fmt.Sprintf("%q", r.sent); got != fmt.Sprintf("%q", want) {
		r.t.Fatalf("it did %s, want %q", got, want)
	}
	r.sent = nil
}

// check verifies the lists and counts of the stays.
func (r *stayRig) check() {
	r.t.Helper()
	s := r.s
	free, granted, waiting := 0, 0, 0
	var before *stay
	for st := s.first; st != nil; before, st = st, st.next {
		free++
		if s.stays[st.key] != st || !st.isFree || !st.granted || st.inside != nil || st.waiting > 0 ||
			st.prev != before || st.recalled != 0 || before != nil && st.used.Before(before.used) {
			r.fatal("a wrong free stay %+v", st)
		}
	}
	if s.last != before || s.free != free || free > s.Limit {
		r.fatal("%d free stays, counted %d, limit %d", free, s.free, s.Limit)
	}
	for key, st := range s.stays {
		n, early := 0, 0
		for l := st.head; l != nil; l = l.next {
			n++
			if l.order <= st.upTo {
				early++
			}
			if l.stay != st || l.holds || r.callers[l] == nil {
				r.fatal("%q: a wrong caller waits: %+v", key, l)
			}
		}
		if q := r.asked[st.request]; st.key != key || q == nil || q.granted != st.granted || n != st.waiting ||
			early != st.before {
			r.fatal("%q: wrong: %+v, %d wait, %d early, the group has %+v", key, st, n, early, q)
		}
		if st.inside != r.inside[key] || !st.granted && (n == 0 || st.inside != nil) ||
			st.granted && st.inside == nil && !st.isFree && !st.isStalled {
			r.fatal("%q: wrong: %+v, inside is %v", key, st, r.inside[key])
		}
		waiting += n
		if st.granted {
			granted++
		}
	}
	if len(r.asked) != len(s.stays) {
		r.fatal("%d stays and %d requests", len(s.stays), len(r.asked))
	}
	f, a, w := s.Counts()
	holding := 0
	for _, c := range r.callers {
		if c.holds {
			holding++
		}
	}
	if f != free || a != len(s.stays)-granted || w != waiting || waiting+holding != len(r.callers) ||
		holding != len(r.inside) {
		r.fatal("counts %d %d %d; %d callers, %d wait, %d hold, %d inside", f, a, w, len(r.callers), waiting, holding,
			len(r.inside))
	}
}

// empty checks that a rig without callers keeps nothing after the idle time.
func (r *stayRig) empty() {
	r.t.Helper()
	r.renewed()
	r.tick(rigIdle)
	if s := r.s; len(s.stays)+s.free+s.waiting+s.granted+len(s.stalled)+len(r.asked) != 0 || s.first != nil ||
		s.last != nil || s.Next(r.now) != 0 || len(s.useless) > biasKeys {
		r.fatal("something is left: %+v, the group has %d", s, len(r.asked))
	}
}
