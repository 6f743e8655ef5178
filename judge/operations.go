package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

type callID struct {
	stream int
	op     uint64
}

type call struct {
	id              callID
	keys            []string
	shares          []share // of the keys, in their order
	resumes         bool
	upgrades        lockfsm.Token // the token of its hold
	begun, returned int64
	outcome         history.Outcome
	token           lockfsm.Token
	// believe is the time until which the caller believed that it held the lock; MaxInt64 if unknown
	believe   int64
	confirmed int64 // time when Unlock returned nil; MaxInt64 if it did not
	lowered   int64 // time when the caller began to act as a reader; MaxInt64 if it did not
}

type account struct {
	token       lockfsm.Token
	last        lockfsm.Token // the last reserved token of a stay; 0 if the grant is not a stay
	passes      []*call       // of a stay, in the order of tokens
	keys        []string
	shares      []share // of the keys, in their order
	upgrades    lockfsm.Token
	group       history.Group
	session     lockfsm.SessionID
	by, endedBy int64       // latest possible times of the grant and its end; MaxInt64 if unknown
	how         history.How // 0 if the lock ended with its group
	shared      int64       // latest possible time of its downgrade; MaxInt64 if unknown
	lowered     []share     // after the downgrade; nil if unknown
}

// gathered is the data of a history that does not depend on the order of the log.
type gathered struct {
	calls    []*call
	byID     map[callID]*call
	accounts map[lockfsm.Token]*account
	owners   map[lockfsm.Token]*call // for each token, the call that was granted the lock
	// for each session, the stream of the calls that returned its tokens
	streams map[lockfsm.SessionID]int
	stays   []*account // in the order of tokens
	first   map[asker]int64
}

func gather(events []history.Event) (*gathered, error) {
	g := &gathered{
		byID: map[callID]*call{}, accounts: map[lockfsm.Token]*account{}, owners: map[lockfsm.Token]*call{},
		streams: map[lockfsm.SessionID]int{},
	}
	for _, e := range events {
		id := callID{e.Stream, e.Op}
		c := g.byID[id]
		switch e.Kind {
		case history.Dropped:
			return nil, fmt.Errorf("%w: %s dropped %d events", ErrUnknown, e.Node, e.Count)
		case history.Call:
			c = &call{id: id, keys: keysOf(&e), shares: sharesOf(&e), resumes: e.Resumes != 0, upgrades: e.Upgrades, begun: e.At,
				returned: math.MaxInt64, believe: math.MaxInt64, confirmed: math.MaxInt64, lowered: math.MaxInt64}
			g.byID[id] = c
			g.calls = append(g.calls, c)
		case history.Return, history.Downgrade, history.Unlock, history.Unlocked, history.Lost:
			if c == nil {
				return nil, fmt.Errorf("%w: %s: a %v of a call that never began", ErrUnknown, e.Node, e.Kind)
			}
			c.saw(e)
		case history.Grant:
			a := g.account(e)
			a.by, a.last = min(a.by, e.At), max(a.last, e.Last)
		case history.Shared:
			a := g.account(e)
			a.shared, a.lowered = min(a.shared, e.At), sharesOf(&e)
		case history.End:
			a := g.account(e)
			a.endedBy, a.how = min(a.endedBy, e.At), e.How
		}
	}
	for _, c := range g.calls {
		if c.outcome != history.Granted {
			continue
		}
		g.owners[c.token] = c
		if a := g.accounts[c.token]; a != nil {
			g.streams[a.session] = c.id.stream
			if c.resumes { // it names one key, and gets all keys of the hold in their modes
				c.keys, c.shares = a.keys, a.shares
			}
		}
	}
	g.endGroups()
	g.first = g.unanswered()
	return g, g.listStays()
}

// If a grant has no recorded end and another group followed, endGroups sets the end. The grant
// ended at the first grant of the next group at the latest.
func (g *gathered) endGroups() {
	type life struct {
		group  history.Group
		lowest lockfsm.Token
		by     int64
	}
	var lives []life
	for t, a := range g.accounts {
		if a.by == math.MaxInt64 {
			continue
		}
		i := slices.IndexFunc(lives, func(l life) bool { return l.group == a.group })
		if i < 0 {
			i = len(lives)
			lives = append(lives, life{a.group, t, a.by})
		}
		lives[i].lowest, lives[i].by = min(lives[i].lowest, t), min(lives[i].by, a.by)
	}
	slices.SortFunc(lives, func(a, b life) int { return cmp.Compare(a.lowest, b.lowest) })
	for _, a := range g.accounts {
		i := slices.IndexFunc(lives, func(l life) bool { return l.group == a.group })
		if a.endedBy == math.MaxInt64 && i >= 0 && i+1 < len(lives) {
			a.endedBy = lives[i+1].by
		}
	}
}

func (c *call) saw(e history.Event) {
	switch e.Kind {
	case history.Return:
		c.returned, c.outcome, c.token = e.At, e.Outcome, e.Token
	case history.Downgrade:
		c.lowered = min(c.lowered, e.At)
	case history.Unlock:
		c.believe = min(c.believe, e.At)
	case history.Unlocked:
		if e.Err == "" {
			c.confirmed = min(c.confirmed, e.At)
		}
	case history.Lost:
		until := e.At
		if e.Until != 0 {
			until = min(until, e.Until)
		}
		c.believe = min(c.believe, until)
	}
}

func (g *gathered) account(e history.Event) *account {
	a := g.accounts[e.Token]
	if a == nil {
		a = &account{token: e.Token, keys: keysOf(&e), shares: sharesOf(&e), upgrades: e.Upgrades, group: e.Group,
			session: e.Session, by: math.MaxInt64, endedBy: math.MaxInt64, shared: math.MaxInt64}
		g.accounts[e.Token] = a
	}
	return a
}

func keysOf(e *history.Event) []string {
	if len(e.Keys) == 0 {
		return []string{e.Key}
	}
	return append([]string{e.Key}, e.Keys...)
}

func sharesOf(e *history.Event) (all []share) {
	for i := range 1 + len(e.Keys) {
		permits, of := e.TermsOf(i)
		all = append(all, share{permits, of})
	}
	return all
}

// held returns the keys of c that are also keys of the lock with the token c.token. If that lock
// is unknown or shares no key with c, held returns all keys of c, and the model then reports a
// violation.
func (g *gathered) held(c *call) []string {
	var has []string
	if a := g.accounts[c.token]; a != nil {
		has = a.keys
	}
	if owner := g.owners[c.token]; owner != nil {
		has = owner.keys
	}
	if both := slices.DeleteFunc(slices.Clone(c.keys),
		func(key string) bool { return !slices.Contains(has, key) }); len(both) > 0 {
		return both
	}
	return c.keys
}

// asker identifies the calls of one stream that have the same first key. Stream 0 means the calls
// of all streams.
type asker struct {
	key    string
	stream int
}

// operations converts a history to the operations of each key, sorted by the names of the keys.
func operations(events []history.Event, o Options) ([]*key, error) {
	g, err := gather(events)
	if err != nil {
		return nil, err
	}
	b := builder{slack: int64(o.Uncertainty+1) / 2, keys: map[part]*key{}}
	told := map[lockfsm.Token]bool{}
	for _, c := range g.calls {
		a := g.accounts[c.token]
		switch {
		// The call failed because another request was waiting. So the lock may have no owner.
		case c.outcome == history.Held && c.token == 0:
		case g.seesPass(c) != nil:
			b.addSeen(g.seesPass(c), c)
		case c.outcome == history.Held:
			b.add(g.held(c), operation{kind: seen, token: c.token, by: "in " + c.String()}, c.begun, c.returned)
		case c.outcome != history.Granted || g.stay(c.token) != nil: // addStay adds a pass
		default:
			told[c.token] = true
			granted := c.returned
			if a != nil {
				granted = min(granted, a.by)
			}
			b.shared(c.keys, c.shares, operation{kind: grant, token: c.token, hold: c.upgrades, by: "to " + c.String()}, c.begun,
				granted)
			b.end(c, a)
			b.lower(c, a)
		}
	}
	tokens := make([]lockfsm.Token, 0, len(g.accounts))
	for t := range g.accounts {
		tokens = append(tokens, t)
	}
	slices.Sort(tokens)
	for _, t := range tokens {
		a := g.accounts[t]
		if a.last != 0 {
			b.addStay(a, g.asked(a))
			continue
		}
		if told[t] || a.by == math.MaxInt64 {
			continue
		}
		from := g.asked(a)
		b.shared(a.keys, a.shares, operation{kind: grant, token: t, hold: a.upgrades, by: "to " + untold}, from, a.by)
		if a.endedBy != math.MaxInt64 {
			b.add(a.keys, operation{kind: end, token: t, by: a.how.String()}, from, a.endedBy)
		}
	}
	return b.done(), b.err
}

// unanswered considers the calls that returned neither Granted nor Held. For each first key and
// stream, it returns the time when the earliest of these calls began. Stream 0 means all streams.
func (g *gathered) unanswered() map[asker]int64 {
	first := map[asker]int64{}
	for _, c := range g.calls {
		if c.outcome == history.Granted || c.outcome == history.Held {
			continue
		}
		for _, a := range [...]asker{{c.keys[0], 0}, {c.keys[0], c.id.stream}} {
			if at, known := first[a]; !known || c.begun < at {
				first[a] = c.begun
			}
		}
	}
	return first
}

// asked returns the earliest possible time of a grant whose token no call returned. The grant was
// for a call that returned neither Granted nor Held.
func (g *gathered) asked(a *account) int64 {
	return min(a.by, g.first[asker{a.keys[0], g.streams[a.session]}])
}

const untold = "a call that was not told"

func (c *call) String() string {
	if c.id.op == 0 {
		return untold
	}
	return fmt.Sprintf("call %d of stream %d", c.id.op, c.id.stream)
}

type builder struct {
	slack int64
	keys  map[part]*key
	err   error
}

// This method adds an operation of the kind end for the lock that the call c got. While the caller
// believes that it holds the lock, the lock can be ended only by force.
func (b *builder) end(c *call, a *account) {
	from, by, how := c.begun, c.confirmed, "release"
	if a != nil && a.endedBy != math.MaxInt64 {
		by, how = min(by, a.endedBy), a.how.String()
	}
	if by == math.MaxInt64 {
		return // the lock has not ended
	}
	if a == nil || a.how != history.ByForce {
		from = c.needed()
	}
	b.add(c.keys, operation{kind: end, token: c.token, by: how}, from, by)
}

// lower adds an operation of the kind lower for the lock that the call c got. The caller relies on
// the lower modes only from the beginning of the operation. If they are unknown, it is a reader.
func (b *builder) lower(c *call, a *account) {
	if c.lowered == math.MaxInt64 || c.upgrades != 0 {
		return
	}
	by := int64(math.MaxInt64) - b.slack
	if a != nil {
		by = min(by, a.shared, a.endedBy)
	}
	if a != nil && a.shared == math.MaxInt64 && a.endedBy < c.lowered {
		return // it was ended by force
	}
	to := slices.Repeat([]share{reader}, len(c.keys))
	if a != nil && a.lowered != nil {
		to = a.lowered
	}
	b.shared(c.keys, to, operation{kind: lower, token: c.token, by: "of " + c.String()}, c.lowered, by)
}

// needed returns the time before which the lock of c ended only by force.
func (c *call) needed() int64 {
	if c.believe == math.MaxInt64 {
		return c.begun
	}
	return max(c.begun, c.believe)
}

// shared adds an operation for each key, with the share of that key.
func (b *builder) shared(names []string, shares []share, o operation, from, to int64) {
	for i, name := range names {
		o.share = shares[i]
		b.addOne(part{key: name}, o, from, to)
	}
}

func (b *builder) add(names []string, o operation, from, to int64) {
	for _, name := range names {
		b.addOne(part{key: name}, o, from, to)
	}
}

func (b *builder) addOne(p part, o operation, from, to int64) {
	k := b.keys[p]
	if k == nil {
		k = &key{part: p}
		b.keys[p] = k
	}
	from, to = from-b.slack, to+b.slack
	if to < from {
		if b.err == nil {
			b.err = fmt.Errorf("porcupine: %v: %v was seen %d ns before it can have happened", p, o, from-to)
		}
		return
	}
	k.operations = append(k.operations, porcupine.Operation{Input: o, Call: from, Return: to})
}

// done returns the keys in order. It assigns each operation to a line of the picture that
// porcupine draws, so that the operations on one line do not overlap.
func (b *builder) done() []*key {
	keys := make([]*key, 0, len(b.keys))
	for _, k := range b.keys {
		keys = append(keys, k)
		k.narrow()
		slices.SortFunc(k.operations, func(x, y porcupine.Operation) int {
			return cmp.Or(cmp.Compare(x.Call, y.Call), cmp.Compare(x.Return, y.Return))
		})
		var lines []int64
		for i := range k.operations {
			o := &k.operations[i]
			line := slices.IndexFunc(lines, func(until int64) bool { return until < o.Call })
			if line < 0 {
				line = len(lines)
				lines = append(lines, 0)
			}
			lines[line], o.ClientId = o.Return, line
		}
	}
	slices.SortFunc(keys, func(x, y *key) int { return cmp.Or(cmp.Compare(x.key, y.key), cmp.Compare(x.stay, y.stay)) })
	return keys
}
