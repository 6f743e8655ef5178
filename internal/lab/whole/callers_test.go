package whole

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/lab/timeline"
	"github.com/mortise-lock/mortise/internal/outside"
)

// caller calls one thing after the other, in sessions that it changes.
type caller struct {
	*run
	name   string
	home   int // the instance whose sessions it uses
	random *rand.Rand

	own   *mortise.Session // of NewSession; nil if none is open
	owner *mortise.Node    // of own
	visit *guest.Guest     // nil unless the caller is a guest
	stay  *guest.Session   // nil if none is open
}

func (r *run) newCaller(n int, guest bool) *caller {
	c := &caller{run: r, name: fmt.Sprintf("caller %d", n), home: n % r.plan.nodes,
		random: rand.New(rand.NewPCG(r.seed, uint64(100+n)))}
	if guest {
		c.name = fmt.Sprintf("guest %d", n)
		c.invite(n)
	}
	return c
}

func (c *caller) invite(n int) {
	config := c.config(0)
	config.Name, config.Bind, config.Dir, config.Hooks, config.Logger = c.name, "", "", nil, c.logger(c.name)
	w := c.world(&process{}, guestHost(n))
	var err error
	if c.visit, err = guest.OpenIn(outside.World{Dial: w.Dial, Clock: w.Clock, Random: w.Random}, config); err != nil {
		c.bug("%s: %v", c.name, err)
	}
}

// doors are the ways into one session.
type doors struct {
	acquire func(context.Context, mortise.Request) (held, error)
	sticky  func(context.Context, string, mortise.StickyOptions) (held, error)
	resume  func(context.Context, string, mortise.Token, mortise.ResumeOptions) (held, error)
	node    *mortise.Node // nil for a guest
}

type session[L held] interface {
	Acquire(context.Context, mortise.Request) (L, error)
	LockSticky(context.Context, string, mortise.StickyOptions) (L, error)
	Resume(context.Context, string, mortise.Token, mortise.ResumeOptions) (L, error)
}

func doorsOf[L held](s session[L], n *mortise.Node) *doors {
	return &doors{
		acquire: func(ctx context.Context, r mortise.Request) (held, error) { return lockOf(s.Acquire(ctx, r)) },
		sticky: func(ctx context.Context, key string, o mortise.StickyOptions) (held, error) {
			return lockOf(s.LockSticky(ctx, key, o))
		},
		resume: func(ctx context.Context, key string, t mortise.Token, o mortise.ResumeOptions) (held, error) {
			return lockOf(s.Resume(ctx, key, t, o))
		},
		node: n,
	}
}

// enter returns a session, or nil if there is none now.
func (c *caller) enter() *doors {
	if c.visit != nil {
		return c.enterAsGuest()
	}
	n := c.node(c.home)
	if c.owner != n {
		c.own, c.owner = nil, nil // it has ended with its node
	}
	if n == nil {
		return nil
	}
	if c.own == nil && c.random.IntN(6) == 0 {
		c.within("NewSession: "+c.name, 6*time.Second, func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			s, err := n.NewSession(ctx, time.Second+time.Duration(c.random.IntN(1000))*time.Millisecond)
			if err != nil {
				c.say("%s opens no session: %v", c.name, err)
				return
			}
			c.own, c.owner = s, n
			c.count("sessions")
		})
	}
	if c.own == nil || c.random.IntN(4) == 0 {
		return doorsOf[*mortise.Lock](n, n)
	}
	return doorsOf[*mortise.Lock](c.own, n)
}

func (c *caller) enterAsGuest() *doors {
	if c.stay == nil {
		c.within("Session: "+c.name, 8*time.Second, func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			s, err := c.visit.Session(ctx)
			if err != nil {
				c.say("%s gets no session: %v", c.name, err)
				return
			}
			c.stay = s
			c.count("visits")
		})
	}
	if c.stay == nil {
		return nil
	}
	return doorsOf[*guest.Lock](c.stay, nil)
}

// exit closes the caller's own session, if it has one.
func (c *caller) exit() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if c.stay != nil {
		c.within("Close of a guest's session: "+c.name, 4*time.Second, func() {
			c.say("%s closes its session: %v", c.name, c.stay.Close(ctx))
		})
		c.stay = nil
	}
	if c.own != nil {
		c.within("Close of a session: "+c.name, 4*time.Second, func() {
			c.say("%s closes its session: %v", c.name, c.own.Close(ctx))
		})
		c.own, c.owner = nil, nil
	}
}

func (c *caller) end() {
	c.exit()
	if c.visit != nil {
		if err := c.visit.Close(); err != nil {
			c.bug("%s: %v", c.name, err)
		}
	}
}

func (c *caller) spend(until time.Time) {
	for time.Now().Before(until) {
		if c.random.IntN(30) == 0 {
			c.exit()
		}
		d := c.enter()
		if d == nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if c.random.IntN(3) == 0 {
			time.Sleep(time.Duration(c.random.IntN(100)) * time.Millisecond)
		}
		c.once(d)
	}
	c.end()
}

// key returns one of few keys, so that callers meet.
func (c *caller) key() string { return fmt.Sprint("k", c.random.IntN(4)) }

// once makes one request, of a kind that is drawn, and ends what it got.
func (c *caller) once(d *doors) {
	q := mortise.Request{Key: c.key()}
	if c.random.IntN(5) == 0 {
		q.JeopardyGrace = time.Duration(c.random.IntN(3000)) * time.Millisecond
	}
	after := func(held, *claim) {}
	switch c.random.IntN(14) {
	case 0:
		q.Try = true
	case 1, 2:
		q.Mode = mortise.Shared
	case 3:
		q.Mode = mortise.Upgradable
		after = c.upgraded
	case 4:
		q.Key, q.Mode = "permits", mortise.Permits(1+c.random.IntN(2), 3)
	case 5:
		q.Also = []mortise.Part{{Key: "k0"}, {Key: "k" + fmt.Sprint(1+c.random.IntN(3)), Mode: mortise.Shared}}
		q.Key = "also"
	case 6:
		c.stuck(d)
		return
	case 7:
		after = c.downgraded
	case 8:
		q.Key, q.Tree = fmt.Sprintf("t/%d/%d", c.random.IntN(2), c.random.IntN(2)), true
	case 9:
		q.MaxHold = time.Duration(1+c.random.IntN(100)) * time.Millisecond
		q.LockDelay = time.Duration(c.random.IntN(100)) * time.Millisecond
		if c.random.IntN(2) == 0 {
			q.MaxHold, q.MaxIdle = 0, time.Duration(100+c.random.IntN(100))*time.Millisecond
		}
	case 10:
		q.LockDelay = 3 * time.Second
		after = func(h held, cl *claim) { c.resumed(d, h, cl) }
	case 11:
		after = func(h held, _ *claim) { c.written(d, h) }
	case 12:
		after = func(h held, cl *claim) { c.asked(d, h, cl) }
	}
	h := c.get(q.Key, q.Try, func(ctx context.Context) (held, error) { return d.acquire(ctx, q) })
	if h == nil {
		return
	}
	all := c.claimed(h, q)
	c.hold(h)
	after(h, all[0])
	c.release(h, all)
}

// get calls until a lock is granted or not, and counts the result.
func (c *caller) get(key string, try bool, call func(context.Context) (held, error)) (h held) {
	patience := time.Duration(c.random.Int64N(int64(6 * time.Second)))
	if c.random.IntN(3) == 0 {
		patience /= 100
	}
	var err error
	c.within("Acquire: "+c.name+" "+key, patience+10*time.Millisecond, func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		h, err = call(ctx)
	})
	if err == nil {
		c.count("grants")
		return h
	}
	c.say("%s not %s: %v", c.name, key, err)
	c.count(kind(err))
	if errors.Is(err, mortise.ErrClosed) {
		c.own, c.owner = nil, nil
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

func kind(err error) string {
	for _, k := range []struct {
		err  error
		name string
	}{{context.DeadlineExceeded, "deadline"}, {mortise.ErrClosed, "closed"}, {mortise.ErrHeld, "held"},
		{mortise.ErrLeaving, "leaving"}, {mortise.ErrNotReady, "not ready"}, {mortise.ErrOverloaded, "overloaded"},
		{mortise.ErrQueueFull, "full"}, {mortise.ErrNotHeld, "not held"}, {mortise.ErrLost, "lost"}} {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return "other: " + err.Error()
}

// claimed adds claims for the keys of a request, and reports what contradicts them.
func (c *caller) claimed(h held, q mortise.Request) []*claim {
	first := newClaim(h, c.name, q.Mode)
	all := []*claim{first}
	if q.Tree {
		return all // package history judges trees
	}
	c.enlist(q.Key, first)
	for _, p := range q.Also {
		also := newClaim(h, c.name, p.Mode)
		also.key = p.Key
		all = append(all, also)
		c.enlist(p.Key, also)
	}
	return all
}

func newClaim(h held, name string, m mortise.Mode) *claim {
	cl := &claim{key: h.Key(), lock: h, caller: name, mode: m}
	switch m {
	case mortise.Permits(1, 3):
		cl.permits, cl.of = 1, 3
	case mortise.Permits(2, 3):
		cl.permits, cl.of = 2, 3
	}
	return cl
}

func (c *caller) enlist(key string, cl *claim) {
	c.mu.Lock()
	wrong := c.claims.add(key, cl)
	if c.visit != nil { // no history has the calls of guests
		kind := timeline.Shared
		if cl.exclusive() {
			kind = timeline.Held
		}
		c.shows.line.Begin(kind, c.elapsed(), key, c.shown(cl))
	}
	c.mu.Unlock()
	c.say("%s holds %s token %d", c.name, key, cl.lock.Token())
	if wrong != "" {
		c.bug("%s", wrong)
	}
}

func (c *caller) unlist(all ...*claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cl := range all {
		c.claims.drop(cl.key, cl)
		c.shows.line.End(timeline.Held, c.elapsed(), cl.key, c.shown(cl))
		c.shows.line.End(timeline.Shared, c.elapsed(), cl.key, c.shown(cl))
	}
}

func (c *caller) shown(cl *claim) string { return fmt.Sprintf("%s token %d", c.name, cl.lock.Token()) }

// hold waits for a while, or until the lock has ended.
func (c *caller) hold(h held) {
	d := time.Duration(c.random.ExpFloat64() * float64(40*time.Millisecond))
	if c.random.IntN(25) == 0 {
		d += c.ttl * 3 / 2
	}
	select {
	case <-time.After(d):
	case <-h.Done():
	}
	if errors.Is(h.Err(), mortise.ErrInJeopardy) && c.random.IntN(2) == 0 {
		c.within("Regain: "+c.name, 5*time.Second, func() {
			ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
			defer cancel()
			c.say("%s regains %s: %v", c.name, h.Key(), h.Regain(ctx))
		})
	}
}

func (c *caller) release(h held, all []*claim) {
	c.unlist(all...)
	var err error
	if c.random.IntN(4) == 0 {
		err = h.UnlockSoon()
	} else {
		c.within("Unlock: "+c.name+" "+h.Key(), 1010*time.Millisecond, func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			err = h.Unlock(ctx)
		})
	}
	c.say("%s leaves %s token %d: %v", c.name, h.Key(), h.Token(), err)
}

func (c *caller) upgraded(h held, cl *claim) {
	up := c.get(h.Key(), false, func(ctx context.Context) (held, error) { return upgrade(ctx, h) })
	if up == nil {
		return
	}
	c.unlist(cl) // the hold below does not exclude its own upgrade
	higher := newClaim(up, c.name, mortise.Exclusive)
	c.enlist(up.Key(), higher)
	c.hold(up)
	c.release(up, []*claim{higher})
}

func (c *caller) downgraded(h held, cl *claim) {
	c.within("Downgrade: "+c.name, 2010*time.Millisecond, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		c.mu.Lock()
		cl.mode = mortise.Shared
		c.mu.Unlock()
		c.say("%s lowers %s: %v", c.name, h.Key(), h.Downgrade(ctx))
	})
	c.hold(h)
}

// resumed gives a hold up, and takes it over in another session.
func (c *caller) resumed(d *doors, h held, cl *claim) {
	c.unlist(cl)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	err := h.Detach(ctx)
	cancel()
	c.say("%s detaches %s token %d: %v", c.name, h.Key(), h.Token(), err)
	if err != nil {
		return
	}
	if other := c.enter(); other != nil {
		d = other
	}
	again := c.get(h.Key(), false, func(ctx context.Context) (held, error) {
		return d.resume(ctx, h.Key(), h.Token(), mortise.ResumeOptions{})
	})
	if again == nil {
		return
	}
	cl = newClaim(again, c.name, mortise.Exclusive)
	cl.entered = true // it has the token of its hold
	c.enlist(again.Key(), cl)
	c.hold(again)
	c.release(again, []*claim{cl})
}

// stuck takes a lock that its session keeps.
func (c *caller) stuck(d *doors) {
	o := mortise.StickyOptions{Shared: c.random.IntN(3) == 0, Try: c.random.IntN(6) == 0}
	key := fmt.Sprint("s", c.random.IntN(3))
	h := c.get(key, o.Try, func(ctx context.Context) (held, error) { return d.sticky(ctx, key, o) })
	if h == nil {
		return
	}
	m := mortise.Exclusive
	if o.Shared {
		m = mortise.Shared
	}
	cl := newClaim(h, c.name, m)
	c.enlist(key, cl)
	c.hold(h)
	c.release(h, []*claim{cl})
}

// written counts up in the data of a key, under its lock.
func (c *caller) written(d *doors, h held) {
	l, ok := h.(*mortise.Lock)
	if !ok {
		return
	}
	key := "data of " + h.Key()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c.within("Put: "+c.name, 2010*time.Millisecond, func() {
		data, revision, err := c.read(ctx, d.node, key)
		if err != nil {
			return
		}
		n, _ := strconv.Atoi(string(data))
		group := d.node.Status().Group
		next, err := l.Put(ctx, key, []byte(strconv.Itoa(n+1)), revision)
		c.say("%s puts %d at %d: %v", c.name, n+1, revision, err)
		c.count("puts")
		if errors.Is(err, mortise.ErrConflict) && h.Err() == nil {
			c.say("%s: a conflict under its lock", c.name) // an earlier Put whose caller gave up
		}
		if err == nil && group == d.node.Status().Group {
			c.mu.Lock()
			defer c.mu.Unlock()
			if last := c.acked[key]; last.group != group || next > last.revision {
				c.acked[key] = acked{group, next}
			}
		}
	})
}

// read gets data, and checks that it is not older than what was acknowledged before.
func (c *caller) read(ctx context.Context, n *mortise.Node, key string) ([]byte, uint64, error) {
	c.mu.Lock()
	last := c.acked[key]
	c.mu.Unlock()
	before := n.Status().Group
	data, revision, err := n.Get(ctx, key)
	if err == nil && before == last.group && n.Status().Group == last.group && revision < last.revision {
		c.bug("%s reads revision %d of %q, although %d was acknowledged", c.name, revision, key, last.revision)
	}
	return data, revision, err
}

// asked queries the group, and sometimes ends its own hold by force.
func (c *caller) asked(d *doors, h held, cl *claim) {
	if d.node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c.within("query: "+c.name, 2010*time.Millisecond, func() {
		switch c.random.IntN(4) {
		case 0:
			c.unlist(cl) // the holder may believe for longer that it holds the lock
			ended, err := d.node.ForceUnlock(ctx, h.Key(), h.Token(), "by the seed")
			c.say("%s forces %s: %v %v", c.name, h.Key(), ended, err)
		case 1:
			info, err := d.node.Peek(ctx, h.Key())
			c.say("%s sees %d in %s: %v", c.name, len(info.Queue), h.Key(), err)
		case 2:
			first, err := d.node.IDs(ctx, 3)
			c.say("%s has ids %v: %v", c.name, first, err)
		case 3:
			held, err := d.node.Check(ctx, h.Key(), h.Token())
			c.say("%s checks %s: %v %v", c.name, h.Key(), held, err)
		}
	})
}
