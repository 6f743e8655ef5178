package client

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/keeper"
	"github.com/mortise-lock/mortise/session/stay"
)

// twoClocks runs two clients without their goroutines, the core of a keeper, and a machine, on one
// goroutine. A turn of a client reads the clock once, and the callers of Err read it again while
// the turn goes on: at a drawn reading of the clock, time passes and callers act. The keeper's
// clock is as fast as the margin of a lease permits, so the group ends a session at the very
// instant at which the lease of its holders ends. Most steps end at a boundary of a rule, one
// nanosecond before it, or one after it.
type twoClocks struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	now     clock.Time
	began   clock.Time
	keeper  *keeper.Core
	outlets keeper.Outlets
	inputs  []func(clock.Time) // of the keeper
	machine *lockfsm.Machine
	index   uint64
	nonce   uint64
	clients [2]*clocked
	inTurn  bool
	pauseIn int    // the pause is at this reading of the clock; zero means none
	pause   func() // what happens in the pause
	seen    map[string]int
	log     []string
}

// clocked is a client and its link.
type clocked struct {
	*Client
	w        *twoClocks
	id       nodeid.ID
	linked   bool
	toKeeper [][2][]byte
	toClient [][]byte
	turnAt   clock.Time
	calls    []*clockedCall
}

// clockedCall is a call for a lock and what is known about it.
type clockedCall struct {
	Hold
	Pass
	of       *clocked
	name     string
	hold     *clockedCall // of an upgrade
	ends     clock.Time   // MaxHold's end; zero means none
	longest  time.Duration
	moved    []clock.Time // the grant, and each Beat
	granted  bool
	failed   bool
	gone     bool       // released or cancelled by its caller
	lapsed   bool       // its lease was over in a turn or a call of Err
	over     error      // the final error of Err
	doubtful clock.Time // when its last doubt began
	losses   []error
}

const clockedTTL = 5 * time.Second // a multiple of 49 * 50 ns remains after the margin

func newTwoClocks(t *testing.T, seed uint64) *twoClocks {
	w := &twoClocks{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 51)), now: clock.Time(time.Hour),
		began: clock.Time(time.Hour), keeper: keeper.NewCore(), seen: make(map[string]int)}
	m, err := lockfsm.New(lockfsm.Charter{Group: 1, FoundedUnixMS: worldFounded, Rules: lockfsm.RulesVersion,
		SessionTTL: clockedTTL, Limits: lockfsm.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	w.machine = m
	leader := nodeid.Endpoint{ID: nodeidtest.ID(1), Addr: "a"}
	w.outlets = keeper.Outlets{
		Propose: func(term uint64, blob []byte) bool {
			w.inputs = append(w.inputs, func(clock.Time) { w.apply(blob) })
			return true
		},
		Confirm: func(term, round uint64) {
			w.inputs = append(w.inputs, func(now clock.Time) { w.keeper.Confirmed(now, term, round) })
		},
		Reply: func(to nodeid.ID, b []byte) error {
			c := w.clients[nodeidtest.Number(to)-100]
			if !c.linked {
				return errNoLink
			}
			c.toClient = append(c.toClient, b)
			return nil
		},
		WallUnixMS: func() int64 { return worldFounded + w.now.Sub(w.began).Milliseconds() },
	}
	w.keeper.Role(w.keeperNow(), keeper.Role{Term: 1, Leading: true, Leader: leader})
	w.keeper.Leads(w.keeperNow(), keeper.Leadership{Term: 1, Rules: lockfsm.RulesVersion})
	w.keeper.AllBound(w.keeperNow())
	w.keeperTurn()
	for i := range w.clients {
		c := &clocked{w: w, id: nodeidtest.ID(uint64(100 + i)), linked: true}
		c.Client = &Client{wake: make(chan struct{}, 1), ended: make(chan struct{}), config: Config{Clock: w,
			TTL: clockedTTL, Stays: 4, StayIdle: 20 * time.Second, Random: w.random, Send: c.send,
			Logger: slog.New(slog.DiscardHandler)}}
		c.core = NewCore(w.now, clockedTTL)
		c.kept.parts.Store(&[]*kept{{stays: stay.NewSet(4, 20*time.Second)}})
		c.record = []byte{byte(i + 1)}
		c.post(input{kind: inputRebind, bytes: c.record, targets: []nodeid.Endpoint{leader},
			waiter: &waiter{result: make(chan error, 1)}})
		w.clients[i] = c
	}
	w.exchange()
	return w
}

func (w *twoClocks) random(b []byte) {
	w.nonce++
	copy(b, fmt.Sprintf("nonce %010d", w.nonce))
}

// Now implements clock.Clock. The reading is from before the pause.
func (w *twoClocks) Now() clock.Time {
	now := w.now
	if w.pauseIn == 0 {
		return now
	}
	for _, c := range w.clients {
		if !c.kept.all()[0].mu.TryLock() {
			return now // other callers would wait
		}
		c.kept.all()[0].mu.Unlock()
	}
	if w.pauseIn--; w.pauseIn == 0 {
		w.pause()
	}
	return now
}

// pausing runs f, and lets time pass and callers act at one of its readings of the clock.
func (w *twoClocks) pausing(f func()) {
	w.pauseIn, w.pause = 1+w.rng.IntN(3), func() {
		w.seen["pause"]++
		for range 1 + w.rng.IntN(4) {
			w.act()
		}
	}
	f()
	w.pauseIn = 0
}

// pausedTurn is a turn in which time mostly passes to the deadline that callers still read, while
// the turn extends it.
func (c *clocked) pausedTurn() {
	w := c.w
	w.note("paused turn of %v", c.id)
	if w.rng.IntN(2) == 0 {
		c.deliver(100)
	}
	deadline := clock.Time(c.deadline.Load())
	w.pausing(func() {
		if rest := w.pause; w.rng.IntN(2) == 0 {
			w.pause = func() {
				w.passUntil(max(w.now, deadline+clock.Time(w.rng.IntN(3))-1))
				c.probeSome()
				rest()
			}
		}
		c.turn()
	})
	if w.rng.IntN(2) == 0 { // the group learns of the ends, and the client not yet that it has
		c.turn()
		c.deliverToKeeper(100)
		c.probeSome()
	}
}

func (c *clocked) probeSome() {
	for _, call := range c.calls {
		if c.w.rng.IntN(4) > 0 {
			call.probe()
		}
	}
}

// keeperNow is the time on the clock of the keeper. In a lease of a client, which is 49/50 of the
// TTL, it runs for the whole TTL.
func (w *twoClocks) keeperNow() clock.Time {
	return w.began + clock.Time(int64(w.now-w.began)*leaseMarginParts/(leaseMarginParts-1))
}

func (w *twoClocks) apply(blob []byte) {
	var results []lockfsm.Result
	w.index++
	w.machine.ApplyEntry(w.index, 1, blob, func(r *lockfsm.Result) { results = append(results, r.Clone()) })
	w.keeper.Applied(w.keeperNow(), results)
}

func (w *twoClocks) keeperTurn() {
	for {
		inputs := w.inputs
		w.inputs = nil
		for _, in := range inputs {
			in(w.keeperNow())
		}
		w.keeper.Turn(w.keeperNow(), &w.outlets)
		if len(w.inputs) == 0 {
			return
		}
	}
}

// pass lets time pass for the keeper, which is not stalled.
func (w *twoClocks) passUntil(until clock.Time) {
	for w.now < until {
		w.now = min(until, w.now.Add(50*time.Millisecond))
		w.keeperTurn()
	}
}

func (c *clocked) send(_ nodeid.Endpoint, renewals, commands []byte) error {
	if !c.linked {
		return errNoLink
	}
	c.toKeeper = append(c.toKeeper, [2][]byte{renewals, commands})
	return nil
}

// turn is a turn of the client's goroutine.
func (c *clocked) turn() {
	w := c.w
	if w.inTurn {
		return
	}
	w.inTurn, c.turnAt = true, w.now
	defer func() { w.inTurn = false }()
	c.lapse(w.now, c.core.pulse.lease.deadline())
	c.Client.turn()
	c.due = 0
	if err := c.core.Check(); err != nil {
		w.fail("the core: %v", err)
	}
	c.poll(c.turnAt)
}

// lapse notes that the lease was over at a time.
func (c *clocked) lapse(now, deadline clock.Time) {
	for _, call := range c.calls {
		call.lapsed = call.lapsed || !now.Before(deadline)
	}
}

// poll takes the answers to calls, as AcquireInto does.
func (c *clocked) poll(at clock.Time) {
	for _, call := range c.calls {
		if call.granted || call.failed || call.gone {
			continue
		}
		var err error
		select {
		case err = <-call.slot:
		default:
			continue
		}
		if err != nil || call.passes() && call.Hold.pass == nil {
			call.failed = true
			continue
		}
		call.grantedAt(at)
	}
}

func (call *clockedCall) passes() bool { return call.req == nil }

func (call *clockedCall) grantedAt(at clock.Time) {
	call.granted, call.moved = true, []clock.Time{at}
	call.of.w.seen["granted "+call.name]++
	if call.longest > 0 {
		call.ends = at.Add(call.longest)
	}
	if call.hold != nil {
		call.ends = call.hold.ends
	}
}

// deliver brings the first frames of each direction to their receivers.
func (c *clocked) deliver(most int) {
	c.deliverToKeeper(most)
	for range min(most, len(c.toClient)) {
		frame := c.toClient[0]
		c.toClient = c.toClient[1:]
		c.Receive(nodeidtest.ID(1), frame)
	}
}

func (c *clocked) deliverToKeeper(most int) {
	for range min(most, len(c.toKeeper)) {
		frame := c.toKeeper[0]
		c.toKeeper = c.toKeeper[1:]
		c.w.keeper.ReceiveFrom(c.w.keeperNow(), keeper.Sender{ID: c.id}, frame[0], frame[1])
		c.w.keeperTurn()
	}
}

// exchange delivers all frames until there are no more.
func (w *twoClocks) exchange() {
	for range 12 {
		for _, c := range w.clients {
			c.deliver(100)
			c.turn()
			c.deliver(100)
		}
	}
}

func (c *clocked) cut() {
	c.linked, c.toKeeper, c.toClient = false, nil, nil
	c.Down(nodeidtest.ID(1))
	c.w.keeper.Down(c.w.keeperNow(), c.id)
	c.w.keeperTurn()
}

func (w *twoClocks) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d at %v: %s\n%v", w.seed, w.now.Sub(w.began), fmt.Sprintf(format, args...), w.log)
}

func (w *twoClocks) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%v "+format+"\n", append([]any{w.now.Sub(w.began)}, args...)...))
}

// boundaries returns the times at which a rule of the client changes its answer.
func (w *twoClocks) boundaries() (all []clock.Time) {
	for _, c := range w.clients {
		all = append(all, clock.Time(c.deadline.Load()), clock.Time(c.safe.Load()), c.next())
		for _, call := range c.calls {
			if call.ends != 0 {
				all = append(all, call.ends)
			}
			if since := call.doubted(); since != 0 {
				all = append(all, since.Add(call.Grace()))
			}
			if i := call.Hold.idle(); i != nil {
				all = append(all, i.next, clock.Time(i.until.Load()))
			}
		}
	}
	all = slices.DeleteFunc(all, func(at clock.Time) bool { return at < w.now })
	slices.Sort(all)
	return all[:min(len(all), 1+w.rng.IntN(4))]
}

// step lets time pass: mostly to a boundary.
func (w *twoClocks) step() {
	if at := w.boundaries(); len(at) > 0 && w.rng.IntN(4) > 0 {
		w.passUntil(max(w.now, at[w.rng.IntN(len(at))]+clock.Time(w.rng.IntN(3))-1))
		return
	}
	w.passUntil(w.now.Add(time.Duration(w.rng.Int64N(int64(300 * time.Millisecond)))))
}

func pick[T any](w *twoClocks, from []T) (one T, ok bool) {
	if len(from) == 0 {
		return one, false
	}
	return from[w.rng.IntN(len(from))], true
}

// act is one event.
func (w *twoClocks) act() {
	c := w.clients[w.rng.IntN(len(w.clients))]
	call, has := pick(w, c.calls)
	switch n := w.rng.IntN(22); {
	case n < 4:
		w.step()
	case n < 7 && has:
		call.probe()
	case n < 9:
		c.deliver(1 + w.rng.IntN(3))
	case n < 11:
		w.note("turn of %v", c.id)
		c.turn()
	case n < 12:
		if !w.inTurn && w.pauseIn == 0 {
			c.pausedTurn()
		}
	case n < 14:
		c.ask()
	case n < 15 && has:
		call.end(w.rng.IntN(5))
	case n < 16 && c.linked && w.rng.IntN(5) == 0:
		w.note("cut of %v", c.id)
		c.cut()
	case n < 17:
		c.linked = true
	case n < 18 && has:
		if w.pauseIn == 0 {
			w.pausing(call.probe)
		}
	case n < 20 && has:
		call.beat()
	case !w.inTurn:
		c.deliver(100)
		c.turn()
		c.deliver(100)
	}
}

// ask begins a call: for a hold, with a limit, a grace or both, an upgradable hold, the upgrade of
// one, or a pass.
func (c *clocked) ask() {
	w := c.w
	c.calls = slices.DeleteFunc(c.calls, func(call *clockedCall) bool {
		return (call.failed || call.over != nil && call.gone) && w.rng.IntN(2) == 0
	})
	if len(c.calls) > 12 {
		return
	}
	call := &clockedCall{of: c, name: "hold"}
	call.OnLoss(func(_ Loss, err error) {
		call.losses = append(call.losses, err)
		switch err {
		case ErrInJeopardy:
			call.doubtful = call.seldom().until
		case nil:
			if ends := call.doubtful.Add(call.Grace()); !c.turnAt.Before(ends) {
				w.fail("a %s is good again %v after the end of its grace", call.name, c.turnAt.Sub(ends))
			}
		}
	})
	key := string(rune('u' + w.rng.IntN(5)))
	r := &Request{Key: key, Terms: &Terms{}}
	held := slices.DeleteFunc(slices.Clone(c.calls), func(h *clockedCall) bool {
		return h.name != "upgradable" || !h.granted || h.gone || h.over != nil
	})
	hold, has := pick(w, held)
	switch n := w.rng.IntN(6); {
	case has && n < 4:
		*r = hold.UpgradeRequest()
		call.name, call.hold = "upgrade", hold
	case n == 4:
		call.askPass()
		return
	case n < 3:
		r.Terms.Modes, call.name = []lockfsm.Mode{lockfsm.ModeU}, "upgradable"
		fallthrough
	default:
		r.Terms.Grace = []time.Duration{0, time.Second, 8 * time.Second}[w.rng.IntN(3)]
		r.Terms.Longest = []time.Duration{0, 0, 0, time.Second, clockedTTL * 49 / 50, 8 * time.Second}[w.rng.IntN(6)]
		call.longest = r.Terms.Longest
		r.Terms.Idle = []time.Duration{0, 0, time.Second, 3 * time.Second, 8 * time.Second}[w.rng.IntN(5)]
	}
	w.note("%v asks for %s %s, grace %v, longest %v, idle %v", c.id, key, call.name, r.Terms.Grace, r.Terms.Longest,
		r.Terms.Idle)
	r.Terms.beats = &beats{}
	call.client, call.req, r.Caller, call.slot = c.Client, r, &call.Hold, c.slot()
	c.yield(r)
	c.post(input{kind: inputAcquire, hold: &call.Hold})
	c.calls = append(c.calls, call)
}

func (call *clockedCall) askPass() {
	c := call.of
	call.name = "pass"
	call.Pass = passOf(string(rune('p' + c.w.rng.IntN(2))))
	call.client, call.Hold.pass, call.Caller.Caller = c.Client, &call.Pass, &call.Hold
	c.w.note("%v asks for a pass of %s", c.id, call.Pass.Key)
	at := c.w.now
	if answer := c.lockKept(&call.Hold); answer == stay.Passed {
		call.grantedAt(at)
	} else if answer != stay.Waits {
		return
	}
	c.calls = append(c.calls, call)
}

// base returns the call whose beats keep the hold.
func (call *clockedCall) base() *clockedCall {
	if call.hold != nil {
		return call.hold
	}
	return call
}

func (call *clockedCall) beat() {
	base, w := call.base(), call.of.w
	if !base.granted {
		return
	}
	w.note("%s %p beats", base.name, base)
	base.Beat()
	base.moved = append(base.moved, w.now)
}

// idled reports whether the hold may have ended at a time for want of a beat: none was later than
// Terms.Idle before.
func (call *clockedCall) idled(at clock.Time) bool {
	base := call.base()
	return base.Idle() > 0 && !slices.ContainsFunc(base.moved, func(moved clock.Time) bool {
		return moved <= at && at.Before(moved.Add(base.Idle()))
	})
}

// end is how a caller ends its call or changes its hold.
func (call *clockedCall) end(how int) {
	c := call.of
	c.w.note("%v ends %s %p by %d", c.id, call.name, call, how)
	switch {
	case call.gone || call.failed:
		return
	case !call.granted && call.passes():
		return
	case !call.granted:
		c.post(input{kind: inputCancel, hold: &call.Hold})
		call.gone = true
	case how == 0:
		call.endedBy(call.ReleaseSoon)
	case call.passes():
		call.endedBy(func() error { return call.Lapse("it lapses") })
	case how == 1:
		call.startRelease(input{kind: inputDetach, hold: &call.Hold})
		call.gone = true
	case how == 2 && call.name == "upgradable":
		call.DowngradeSoon(toReader())
	}
}

// endedBy checks the error of a function that ends the hold.
func (call *clockedCall) endedBy(end func() error) {
	c, w := call.of, call.of.w
	past := !w.now.Before(clock.Time(c.deadline.Load())) || call.ends != 0 && !w.now.Before(call.ends)
	has, over := call.inGroup(), call.over
	call.gone = true
	if err := end(); err == nil && (past || !has || over != nil) {
		w.fail("the end of a %s succeeds; in the group: %v; past its time: %v; ended before: %v", call.name, has, past, over)
	}
}

// inGroup reports whether the group has the hold now, in the mode in which its caller uses it.
func (call *clockedCall) inGroup() bool {
	for _, e := range call.of.w.machine.Entries() {
		token := call.Token()
		if e.Token == 0 || e.Token != token && (token < e.Token || token > e.Last) {
			continue
		}
		if e.Session != call.of.core.session && e.Session != call.of.status.Session {
			return false
		}
		return call.name != "upgradable" || call.Lowered() || slices.Equal(e.Modes, []lockfsm.Mode{lockfsm.ModeU})
	}
	return false
}

// probe calls Err and checks it.
func (call *clockedCall) probe() {
	c, w := call.of, call.of.w
	if !call.granted {
		return
	}
	at, paused := w.now, w.seen["pause"]
	deadline := clock.Time(c.deadline.Load())
	c.lapse(at, deadline)
	has, wasOver := call.inGroup(), call.over
	err := call.Err()
	w.note("Err of %s %p is %v, reading %v", call.name, call, err, at.Sub(w.began))
	w.seen[fmt.Sprint(call.name, ": ", err)]++
	paused = w.seen["pause"] - paused
	switch past := call.ends != 0 && !at.Before(call.ends); {
	case wasOver != nil && err != wasOver:
		w.fail("Err of a %s is %v, and was %v", call.name, err, wasOver)
	case err == nil && (!has || past || call.over != nil || call.gone):
		w.fail("Err of a %s %p is nil; in the group: %v; past its longest duration: %v; ended before: %v; gone: %v",
			call.name, call, has, past, call.over, call.gone)
	case err == nil && paused == 0 && !at.Before(deadline):
		w.fail("Err of a %s is nil %v past the deadline", call.name, at.Sub(deadline))
	case err != nil && paused == 0 && has && !past && !errors.Is(err, IdleError{}) &&
		!call.lapsed && !call.gone && wasOver == nil && !call.holdEnded():
		w.fail("Err of a %s %p is %v, before the deadline and the longest duration", call.name, call, err)
	case err == nil:
	case err == ErrInJeopardy:
		call.checkDoubt(at, paused > 0)
	default:
		call.checkOver(err, at)
	}
	if (err == nil) == closed(call.Done()) && paused == 0 {
		w.fail("Err of a %s is %v, and Done is closed: %v", call.name, err, err == nil)
	}
}

// holdEnded reports whether the call is an upgrade whose hold has ended.
func (call *clockedCall) holdEnded() bool {
	return call.hold != nil && (call.hold.gone || call.hold.over != nil || call.hold.Lowered())
}

func (call *clockedCall) checkDoubt(at clock.Time, paused bool) {
	w := call.of.w
	since := call.doubted()
	switch {
	case call.Grace() == 0:
		w.fail("a %s without a grace is in doubt", call.name)
	case paused:
	case since > at || !at.Before(since.Add(call.Grace())):
		w.fail("a %s is in doubt %v after the doubt began, with a grace of %v", call.name, at.Sub(since), call.Grace())
	case call.ends != 0 && !at.Before(call.ends):
		w.fail("a %s is in doubt past its longest duration", call.name)
	}
}

// checkOver checks the end of a hold: its time, and what OnLoss was called with.
func (call *clockedCall) checkOver(err error, at clock.Time) {
	w := call.of.w
	call.over = err
	until, released := call.Until(), errors.Is(err, ErrReleased)
	switch {
	case released != call.gone && !released && !call.Hold.released && call.gone && !call.passes():
		w.fail("a released %s is over by %v", call.name, err)
	case released && until != 0 && call.doubtful == 0:
		w.fail("a %s was released, and lost at %v", call.name, until)
	case errors.Is(err, OverdueError{}) && call.doubtful == 0 && until != call.ends:
		w.fail("a %s was overdue at %v, and ended at %v", call.name, call.ends.Sub(w.began), until.Sub(w.began))
	case errors.Is(err, IdleError{}) && !call.idled(clock.Time(call.Hold.idle().ended.Load())):
		w.fail("a %s with an Idle of %v, moved at %v, was idle at %v", call.name, call.base().Idle(), call.base().moved,
			clock.Time(call.Hold.idle().ended.Load()))
	case errors.Is(err, IdleError{}) && call.doubtful == 0 && until != clock.Time(call.Hold.idle().ended.Load()):
		w.fail("a %s was idle at %v, and ended at %v", call.name, clock.Time(call.Hold.idle().ended.Load()), until)
	case until > w.now || call.ends != 0 && until > call.ends:
		w.fail("a %s ended at %v, past now or its longest duration, %v", call.name, until.Sub(w.began),
			call.ends.Sub(w.began))
	case !released && until == 0 && !call.gone:
		w.fail("a %s was lost at no time: %v", call.name, err)
	}
	finals := slices.DeleteFunc(slices.Clone(call.losses), func(err error) bool {
		return err == nil || err == ErrInJeopardy
	})
	if !released && len(finals) != 1 || released && len(finals) != 0 {
		w.fail("the end of a %s by %v was reported as %v", call.name, err, call.losses)
	}
}

// finish releases all holds, and checks that the group and the clients have none.
func (w *twoClocks) finish() {
	for _, c := range w.clients {
		c.linked = true
		for _, call := range c.calls {
			if call.granted {
				call.probe()
			}
			for !call.gone && !call.failed && !(call.passes() && !call.granted) {
				call.end(w.rng.IntN(2))
			}
		}
	}
	for range 80 {
		w.exchange()
		for _, c := range w.clients { // calls that waited until now
			for _, call := range c.calls {
				if call.granted && !call.gone {
					call.end(0)
				}
			}
		}
		w.passUntil(w.now.Add(time.Second))
	}
	w.exchange()
	if all := w.machine.Entries(); len(all) > 0 {
		w.fail("the group is left with %+v", all)
	}
	for _, c := range w.clients {
		if s := c.Status(); s.Requests+s.Waiting+s.Held != 0 {
			w.fail("client %v is left with %+v", c.id, s)
		}
	}
}

// checkSession checks what a client says about its lease.
func (w *twoClocks) checkSession(c *clocked) {
	deadline, safe := clock.Time(c.deadline.Load()), clock.Time(c.safe.Load())
	want := Safe
	if !w.now.Before(safe) {
		want = Jeopardy
	}
	if !w.now.Before(deadline) {
		want = Lost
	}
	if got := c.Status().Lease; got != want {
		w.fail("the lease of %v is %v, with its deadline in %v", c.id, got, deadline.Sub(w.now))
	}
}

// TestErrByTwoClocks is a property test of holds, upgrades, passes and sessions: Err is nil only
// for what the group has, and ends at the exact instants that the lease, the grace and the longest
// duration name, whatever the client's goroutine knows.
func TestErrByTwoClocks(t *testing.T) {
	slow.UnderRace(t)
	seen := make(map[string]int)
	for seed := range uint64(400) {
		w := newTwoClocks(t, seed)
		for range 150 {
			w.act()
			for _, c := range w.clients {
				w.checkSession(c)
			}
		}
		w.finish()
		for what, n := range w.seen {
			seen[what] += n
		}
	}
	for _, name := range []string{"hold", "upgradable", "upgrade"} {
		if seen[fmt.Sprint(name, ": ", IdleError{})] < 4 {
			t.Errorf("Err of a %s seldom said that it was idle: %v", name, seen)
		}
	}
	for _, name := range []string{"hold", "upgradable", "upgrade", "pass"} {
		for _, err := range []error{nil, ErrLost, ErrReleased} {
			if seen[fmt.Sprint(name, ": ", err)] < 4 {
				t.Errorf("Err of a %s was seldom %v: %v", name, err, seen)
			}
		}
	}
	t.Log(seen)
}
