package stay

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

// rig is a Set for tests. The test is its clock, its callers and its group. The rig checks
// the guarantees of stays after each step.
type rig struct {
	t        *testing.T
	s        *Set
	now      clock.Time
	safe     clock.Time
	deadline clock.Time
	rev      lockfsm.Token
	reserves lockfsm.Token            // tokens that a grant reserves
	tokens   map[string]lockfsm.Token // the last token of each key
	inside   map[string][]*Caller     // the callers that hold each key
	asked    map[*Request]*rigRequest // requests that the group knows
	callers  map[*Caller]*rigCaller   // calls without a final answer, and holds
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

var errOver = errors.New("over")

const (
	rigTTL  = 6 * time.Second
	rigIdle = time.Second
)

func newRig(t *testing.T, limit int) *rig {
	r := &rig{t: t, s: NewSet(limit, rigIdle), now: clock.Time(time.Hour), rev: 1000, reserves: 100,
		tokens: map[string]lockfsm.Token{}, inside: map[string][]*Caller{}, asked: map[*Request]*rigRequest{},
		callers: map[*Caller]*rigCaller{}}
	r.renewed()
	return r
}

// shares reports whether the calls for a key are shared.
func shares(key string) bool { return key[0] == 'r' }

// in returns the first caller that holds a key, or nil.
func (r *rig) in(key string) *Caller {
	if len(r.inside[key]) == 0 {
		return nil
	}
	return r.inside[key][0]
}

// out notes that a caller does not hold its key any more.
func (r *rig) out(l *Caller) {
	r.inside[l.Key] = slices.DeleteFunc(r.inside[l.Key], func(o *Caller) bool { return o == l })
}

func (r *rig) window() Window {
	return Window{Now: r.now, Safe: r.safe, Deadline: r.deadline, TTL: rigTTL}
}

func (r *rig) fatal(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf("%v after %q", fmt.Errorf(format, args...), r.sent)
}

// step carries out the output of the stays, and checks it.
func (r *rig) step() {
	r.t.Helper()
	r.s.Carry(r)
	r.check()
}

func (r *rig) Tell(n *News) {
	r.t.Helper()
	l, c := n.Caller, r.callers[n.Caller]
	if c == nil {
		r.fatal("news for a caller that has its final answer: %+v", n)
	}
	if holds := n.Kind == Wanted || n.Kind == Lost; c.holds != holds {
		r.fatal("%q: news %d for a caller that holds: %v", l.Key, n.Kind, c.holds)
	}
	if n.Kind != Behind {
		r.sent = append(r.sent, [...]string{Granted: "granted ", Wanted: "wanted ", Failed: "failed ",
			Lost: "lost ", Referred: "referred "}[n.Kind]+l.Key)
	}
	switch n.Kind {
	case Granted:
		r.pass(l)
	case Lost:
		r.out(l)
		delete(r.callers, l)
	case Referred:
		st := r.s.stays[name{l.Key, l.Shared}]
		if q := r.asked[st.request]; !l.Shared || q == nil || !q.granted || q.recalled != 0 || r.in(l.Key) == nil {
			r.fatal("a caller that could wait is referred to the group: %+v", q)
		}
		delete(r.callers, l)
	case Failed:
		delete(r.callers, l)
	}
}

func (r *rig) Do(c *Command) error {
	r.t.Helper()
	key, q := c.Request.Key, r.asked[c.Request]
	if (q == nil) != (c.Kind == Acquire) {
		r.fatal("command %d for a request that the group knows: %v", c.Kind, q != nil)
	}
	switch c.Kind {
	case Acquire:
		for other := range r.asked {
			if other.Key == key {
				r.fatal("two requests for %q", key)
			}
		}
		r.asked[c.Request] = &rigRequest{}
		r.sent = append(r.sent, "acquire "+key)
	case Release:
		if l := r.in(key); !q.granted || l != nil && r.callers[l].from == c.Request {
			r.fatal("%q is released, granted %v, inside %v", key, q.granted, l)
		}
		delete(r.asked, c.Request)
		r.sent = append(r.sent, "release "+key)
	case Cancel:
		delete(r.asked, c.Request)
		r.sent = append(r.sent, "cancel "+key)
	case InUse:
		if l := r.in(key); l == nil || l.token != c.Token || r.callers[l].from != c.Request {
			r.fatal("the answer InUse is wrong: %+v", c)
		}
		r.sent = append(r.sent, fmt.Sprint("in use ", key, " ", c.Place))
	}
	return nil
}

// pass checks that l may hold the lock now.
func (r *rig) pass(l *Caller) {
	r.t.Helper()
	c := r.callers[l]
	if r.in(l.Key) != nil && !l.Shared {
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
	r.tokens[l.Key], r.inside[l.Key] = l.token, append(r.inside[l.Key], l)
}

func (r *rig) lock(key string, try bool) (*Caller, Answer) {
	r.t.Helper()
	l := &Caller{Key: key, Shared: shares(key), Try: try}
	r.callers[l] = &rigCaller{begun: r.begun}
	r.begun++
	answer := r.s.Lock(r.window(), l)
	switch answer {
	case Passed:
		r.pass(l)
	case Waits:
		if try {
			r.fatal("a Try waits")
		}
	case Held:
		if in := r.in(key); in == nil || l.Shared || in.token != l.token || !r.now.Before(r.deadline) {
			r.fatal("ErrHeld with %d, inside %v", l.token, in)
		}
		delete(r.callers, l)
	case Ordinary:
		delete(r.callers, l)
		r.s.Yield(key)
	default:
		delete(r.callers, l)
	}
	r.step()
	return l, answer
}

// take locks a key and fails the test if the answer is another one.
func (r *rig) take(key string, want Answer) *Caller {
	r.t.Helper()
	l, got := r.lock(key, false)
	if got != want {
		r.fatal("answer %d, want %d", got, want)
	}
	return l
}

func (r *rig) unlock(l *Caller) {
	r.t.Helper()
	if c := r.callers[l]; c != nil {
		r.out(l)
		delete(r.callers, l)
	}
	r.s.Unlock(r.window(), l)
	r.step()
}

func (r *rig) cancel(l *Caller) {
	r.t.Helper()
	if c := r.callers[l]; c != nil && c.holds {
		r.out(l)
	}
	delete(r.callers, l)
	r.s.Cancel(r.window(), l)
	r.step()
}

// request returns the request for a key that the group knows.
func (r *rig) request(key string) *Request {
	for q := range r.asked {
		if q.Key == key {
			return q
		}
	}
	return nil
}

func (r *rig) grant(key string) {
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

func (r *rig) recall(key string, place lockfsm.Revision) {
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

func (r *rig) yieldWhenFree(key string) {
	r.t.Helper()
	r.s.YieldWhenFree(r.window(), r.request(key))
	r.step()
}

func (r *rig) lose(key string) {
	r.t.Helper()
	q := r.request(key)
	delete(r.asked, q)
	r.s.Lost(q, errOver, nil)
	r.step()
}

func (r *rig) fail(key string) {
	r.t.Helper()
	q := r.request(key)
	delete(r.asked, q)
	r.s.Failed(q, errOver)
	r.step()
}

func (r *rig) nested(l *Caller) {
	r.t.Helper()
	q := r.s.Request(l)
	r.asked[q].nested = true
	r.s.Nested(q)
	r.step()
}

func (r *rig) yield(key string) {
	r.t.Helper()
	r.s.Yield(key)
	r.step()
}

func (r *rig) leave() {
	r.t.Helper()
	r.leaving = true
	r.s.Leave(errOver)
	r.step()
	for q, g := range r.asked { // the core fails the requests
		if !g.granted {
			r.fail(q.Key)
		}
	}
}

func (r *rig) renewed() {
	r.t.Helper()
	r.safe, r.deadline = r.now.Add(rigTTL/3*2), r.now.Add(rigTTL-rigTTL/50)
	r.s.Renewed(r.window())
	r.step()
}

func (r *rig) tick(d time.Duration) {
	r.t.Helper()
	r.now = r.now.Add(d)
	r.s.Tick(r.now)
	r.step()
}

// did compares the commands and news since the last call with the expected ones.
func (r *rig) did(want ...string) {
	r.t.Helper()
	if got := fmt.Sprintf("%q", r.sent); got != fmt.Sprintf("%q", want) {
		r.t.Fatalf("it did %s, want %q", got, want)
	}
	r.sent = nil
}

// check verifies the lists and counts of the stays.
func (r *rig) check() {
	r.t.Helper()
	s := r.s
	free, granted, waiting, keyBytes := 0, 0, 0, 0
	var before *stay
	for st := s.free.first; st != nil; before, st = st, st.next {
		free++
		if s.stays[st.name] != st || !st.isFree || !st.granted || st.inside.size > 0 || st.queue.size > 0 ||
			st.prev != before || st.recalled != 0 || before != nil && st.used.Before(before.used) {
			r.fatal("a wrong free stay %+v", st)
		}
	}
	if s.free.last != before || s.free.size != free || free > s.Limit {
		r.fatal("%d free stays, counted %d, limit %d", free, s.free.size, s.Limit)
	}
	for name, st := range s.stays {
		key := name.key
		n, early := 0, 0
		for l := st.queue.head; l != nil; l = l.next {
			n++
			if l.order <= st.queue.upTo {
				early++
			}
			if l.stay != st || l.holds || !l.waits || r.callers[l] == nil {
				r.fatal("%q: a wrong caller waits: %+v", key, l)
			}
		}
		if q := r.asked[st.request]; st.name != name || name.shared != shares(key) || q == nil ||
			q.granted != st.granted || n != st.queue.size ||
			early != st.queue.early {
			r.fatal("%q: wrong: %+v, %d wait, %d early, the group has %+v", key, st, n, early, q)
		}
		var inside []*Caller
		for l := st.inside.head; l != nil; l = l.next {
			inside = append(inside, l)
		}
		if !slices.Equal(inside, r.inside[key]) || len(inside) != st.inside.size ||
			!st.granted && (n == 0 || inside != nil) ||
			st.granted && inside == nil && !st.isFree && !st.isStalled {
			r.fatal("%q: wrong: %+v, inside is %v", key, st, r.inside[key])
		}
		waiting, keyBytes = waiting+n, keyBytes+n*len(key)
		if st.granted {
			granted++
		}
	}
	if len(r.asked) != len(s.stays) {
		r.fatal("%d stays and %d requests", len(s.stays), len(r.asked))
	}
	holding, inside := 0, 0
	for _, c := range r.callers {
		if c.holds {
			holding++
		}
	}
	for _, all := range r.inside {
		inside += len(all)
	}
	if st := s.recent; st != nil && s.stays[st.name] != st {
		r.fatal("the stay of the last call has ended: %+v", st)
	}
	want := Counts{Granted: granted, Asked: len(s.stays) - granted, Free: free, Inside: inside, Waiting: waiting}
	if got := s.Counts(); got != want || s.keyBytes != keyBytes || waiting+holding != len(r.callers) ||
		holding != inside {
		r.fatal("counts %+v, want %+v; %d callers hold or wait, %d of them hold", got, want, len(r.callers), holding)
	}
}

// empty checks that a rig without callers keeps nothing after the idle time.
func (r *rig) empty() {
	r.t.Helper()
	r.renewed()
	r.tick(rigIdle)
	if s := r.s; len(s.stays)+s.free.size+s.waiting+s.keyBytes+s.granted+len(s.stalled)+len(r.asked) != 0 ||
		s.free.first != nil || s.free.last != nil || s.Next(r.now) != 0 || len(s.biases.byKey) > biasKeys {
		r.fatal("something is left: %+v, the group has %d", s, len(r.asked))
	}
}
