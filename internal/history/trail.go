package history

import (
	"slices"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Trail records events for the commands that one replica applies. It must be used only on the
// goroutine that applies the log. It tracks all requests without the state machine, so that it
// detects faults of the state machine.
type Trail struct {
	// Queue, if not nil, is called with each request when it joins the queues of its keys, even if it
	// is granted at once. Queue is called again when the request leaves the queues. The event has no
	// Kind. Start does not call Queue.
	Queue func(e Event, leaves bool)

	emit func(Event)

	group Group
	index uint64
	seq   uint32
	rev   lockfsm.Revision
	batch []byte
	live  live
}

// NewTrail returns a Trail that passes each event to emit. emit must set the time and the node of
// the event.
func NewTrail(group uint64, emit func(Event)) *Trail {
	return &Trail{emit: emit, group: Group(group), live: newLive()}
}

// Start begins a new account with the state m, which has all entries up to index. It must be called
// when a replica starts, and when it has restored a snapshot.
func (t *Trail) Start(index uint64, m *lockfsm.Machine) {
	t.live = newLive()
	t.index, t.rev = index, m.Revision()
	t.emit(Event{Kind: Begin, Group: t.group, Index: index, Rev: t.rev})
	var order []request
	for _, e := range m.Entries() {
		q := request{e.Session, e.Number}
		h, again := t.live.get(q)
		if !again {
			order = append(order, q)
			h = holding{key: e.Key, permits: e.Permits, of: e.Of, place: e.Place, token: e.Token, last: e.Last,
				upgrades: e.Upgrades}
			if h.modes = Modes(e.Modes); h.modes != "" {
				h.permits, h.of = 0, 0
			}
		} else {
			h.keys = append(h.keys, e.Key)
		}
		t.live.set(q, h)
	}
	for _, q := range order {
		h, _ := t.live.get(q)
		if len(h.keys) > 0 { // the machine lists the keys in its own order
			all := slices.Sorted(slices.Values(append(h.keys, h.key)))
			h.key, h.keys = all[0], all[1:]
			t.live.set(q, h)
		}
		if h.token != 0 {
			held := t.grant(q, h)
			// seq stays zero: the lock was already held when the account began
			held.Group, held.Index, held.Rev = t.group, index, t.rev
			t.emit(held)
		}
	}
}

// Mark records the index up to which the account is complete. It must be called when a snapshot is
// taken, so that an account from the snapshot can be merged with this account.
func (t *Trail) Mark() {
	t.emit(Event{Kind: Mark, Group: t.group, Index: t.index, Rev: t.rev})
}

// Entry must be called with each log entry before it is applied. It keeps batch until Result was
// called for its last command.
func (t *Trail) Entry(index uint64, batch []byte) {
	t.index, t.seq, t.batch = index, 0, batch
}

// Result must be called with the result of each command of the entry, in order, after the command
// is applied.
func (t *Trail) Result(r lockfsm.Result, m *lockfsm.Machine) {
	raw, rest, err := lockfsm.Next(t.batch)
	t.batch, t.rev = rest, m.Revision()
	if err != nil {
		return
	}
	switch r.Kind {
	case lockfsm.Acquire:
		t.asked(raw, r)
	case lockfsm.Release:
		t.gone(r, ByRelease)
	case lockfsm.Downgrade:
		t.shared(raw, r)
	case lockfsm.Cancel:
		t.gone(r, ByCancel)
	case lockfsm.Refuse:
		if r.Code == lockfsm.Deadlock {
			t.drop(request{r.Session, r.Number}, ByCancel)
		}
	case lockfsm.Detach:
		t.detached(r)
	case lockfsm.Close:
		t.over(r, ByClose, r.States)
	case lockfsm.Expire:
		how := ByExpire
		if c, err := lockfsm.Decode(raw); err == nil && c.Cause == lockfsm.Revoked {
			how = ByForce
		}
		t.over(r, how, delayed(r, m))
	case lockfsm.Attach:
		t.over(r, ByAttach, r.States)
	case lockfsm.Evict:
		if r.Evicted != nil {
			t.drop(request{r.Evicted.Session, r.Evicted.Number}, ByForce)
		}
	}
	for _, c := range r.Fired { // a request with Try that ends makes room for those behind it
		if c.Held != nil {
			t.drop(request{c.Session, c.Number}, ByCancel)
		}
	}
	for _, c := range r.Fired {
		if c.Token != 0 {
			t.granted(request{c.Session, c.Number}, c.Token, c.Last)
		}
	}
}

func (t *Trail) asked(raw []byte, r lockfsm.Result) {
	q := request{r.Session, r.Number}
	if r.Evicted != nil {
		t.taken(q, r)
		return
	}
	if _, known := t.live.get(q); known || r.Code != lockfsm.Granted && r.Code != lockfsm.Waiting {
		return
	}
	c, err := lockfsm.Decode(raw)
	if err != nil {
		return
	}
	place := t.rev // the revision of the request
	if r.Code == lockfsm.Granted {
		place = lockfsm.Revision(r.Token) - 1 // a grant in the same command takes the next revision
	}
	g := c.Asked()
	h := holding{key: g.Key, keys: g.Keys, permits: g.Permits, of: g.Of, modes: Modes(g.Modes), place: place,
		sticky: c.Sticky}
	if c.Upgrades {
		owner, _ := t.live.get(request{r.Session, c.Owner})
		h.upgrades = owner.token
	}
	t.live.set(q, h)
	t.queue(q, false)
	if r.Code == lockfsm.Granted {
		t.granted(q, r.Token, r.Last)
	}
}

// taken records an Acquire that has resumed a hold. The old hold ends by force, and a new hold
// begins with the same place.
func (t *Trail) taken(q request, r lockfsm.Result) {
	before := request{r.Evicted.Session, r.Evicted.Number}
	h, known := t.live.get(before)
	if !known {
		return
	}
	t.live.remove(before)
	end := t.event(End, before, h)
	end.How = ByForce
	t.say(end)
	h.token = r.Token
	t.live.set(q, h)
	e := t.grant(q, h)
	e.Resumes = r.Evicted.Token
	t.say(e)
}

// detached tracks a Detach. It records no event if the hold moves to another session, and a
// cancellation otherwise.
func (t *Trail) detached(r lockfsm.Result) {
	q := request{r.Session, r.Number}
	switch h, known := t.live.get(q); {
	case r.Detached == 0 && (r.Code == lockfsm.Done || r.Code == lockfsm.TooManySessions ||
		r.Code == lockfsm.OverGroupBudget):
		t.drop(q, ByCancel)
	case r.Detached != 0 && known:
		t.live.remove(q)
		t.live.set(request{r.Detached, r.Number}, h)
	}
}

func (t *Trail) queue(q request, leaves bool) {
	if t.Queue != nil {
		h, _ := t.live.get(q)
		t.Queue(t.event(0, q, h), leaves)
	}
}

func (t *Trail) granted(q request, token, last lockfsm.Token) {
	h, known := t.live.get(q)
	if known && h.token == 0 {
		h.token, h.last = token, last
		if h.sticky && last == 0 {
			h.last = token
		}
		t.live.set(q, h)
		t.say(t.grant(q, h))
	}
}

func (t *Trail) gone(r lockfsm.Result, how How) {
	if r.Code == lockfsm.Done {
		t.drop(request{r.Session, r.Number}, how)
	}
}

// shared records that a downgrade has given a hold weaker modes.
func (t *Trail) shared(raw []byte, r lockfsm.Result) {
	q := request{r.Session, r.Number}
	c, err := lockfsm.Decode(raw)
	if err != nil || r.Code != lockfsm.Downgraded {
		return
	}
	g := lockfsm.Grant{}.Lowered(c.Modes)
	permits, modes := g.Permits, Modes(g.Modes)
	if h, known := t.live.get(q); known && (h.permits != permits || h.modes != modes) {
		if up, other, raised := t.live.upgradeOf(h.token); raised {
			t.end(up, other, ByRelease)
		}
		h.permits, h.modes = permits, modes
		t.live.set(q, h)
		t.say(t.event(Shared, q, h))
	}
}

func (t *Trail) drop(q request, how How) {
	h, known := t.live.get(q)
	if !known {
		return
	}
	if up, other, raised := t.live.upgradeOf(h.token); raised {
		t.end(up, other, how)
	}
	t.end(q, h, how)
}

// delayed returns the requests that remain after their session has expired. The result r does not
// list them.
func delayed(r lockfsm.Result, m *lockfsm.Machine) (left []lockfsm.Change) {
	if r.TTL == 0 {
		return nil
	}
	for _, e := range m.Entries() {
		if e.Session == r.Session {
			left = append(left, lockfsm.Change{Session: e.Session, Number: e.Number, Token: e.Token})
		}
	}
	return left
}

func (t *Trail) over(r lockfsm.Result, how How, live []lockfsm.Change) {
	if r.Code != lockfsm.Done {
		return
	}
	remains := map[lockfsm.Number]bool{}
	for _, c := range live {
		remains[c.Number] = true
	}
	for _, n := range t.live.of(r.Session) {
		if q := (request{r.Session, n}); !remains[n] {
			h, _ := t.live.get(q)
			t.end(q, h, how)
		}
	}
}

func (t *Trail) end(q request, h holding, how How) {
	t.queue(q, true)
	t.live.remove(q)
	if h.token != 0 {
		e := t.event(End, q, h)
		e.How = how
		t.say(e)
	}
}

func (t *Trail) event(k Kind, q request, h holding) Event {
	return Event{
		Kind: k, Key: h.key, Keys: h.keys, Permits: h.permits, Of: h.of, Modes: h.modes, Token: h.token, Place: h.place,
		Session: q.session, Number: q.number, Upgrades: h.upgrades,
	}
}

func (t *Trail) grant(q request, h holding) Event {
	e := t.event(Grant, q, h)
	e.Last = h.last
	return e
}

func (t *Trail) say(e Event) {
	t.seq++
	e.Group, e.Index, e.Seq, e.Rev = t.group, t.index, t.seq, t.rev
	t.emit(e)
}
