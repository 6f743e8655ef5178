package lockfsm

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
)

// workload chooses random commands, like those that clients and leaders send over a bad network.
// Some commands are repeated, out of order, at the limits, or from an old attachment.
type workload struct {
	rand    *rand.Rand
	t       *twin // read only; the state from which commands are chosen
	sent    []Command
	opened  byte
	openSet []Nonce
	term    uint64
	stays   bool // most requests are sticky, or have Try
	guests  bool // most sessions have a capability
}

// rightsText returns the text of a capability.
func rightsText(words ...string) string {
	c, err := capability.Build("g", time.Time{}, words...)
	if err != nil {
		panic(err)
	}
	return c.Text()
}

// guestOpen makes c the Open of an instance with these rights. Without rights, it is a full
// instance.
func guestOpen(c Command, instance byte, words ...string) Command {
	c.Kind, c.Opener.Instance = Open, [16]byte{instance}
	if len(words) > 0 {
		c.Rights = rightsText(words...)
		c.Opener.Capability = sha256.Sum256([]byte(c.Rights))
	}
	return c
}

// grants are the rights of the workload's sessions.
var grants = [][]string{{}, {"lock k*"}, {"lock k0", "lock k1"}, {"lock k*", "read k*", "force k*"}, {"member"},
	{"member", "force k0"}, {"lock k*", "read *", "force k0", "force k1"}}

// charterFor returns the charter of one seed. Its limits are so small that the workload reaches
// them.
func charterFor(r *rand.Rand) Charter {
	c := Charter{
		Group: 7, FoundedUnixMS: 1 + r.Int64N(1<<40), Rules: 1, SessionTTL: 10 * time.Second,
		Limits: Limits{KeyBytes: 4, WaitersPerLock: 1 + r.Uint32N(5), EntriesPerSession: 1 + r.Uint32N(8),
			Sessions: 1 + r.Uint32N(5)},
	}
	c.Limits.SessionBytes, c.Limits.GroupBytes = budgetsFor(r)
	if r.IntN(3) > 0 {
		c.Grace = 10 * time.Second
	}
	return c
}

// staysCharter returns the charter of a workload with many stays. Its limits are wide, so that the
// queues become long.
func staysCharter(r *rand.Rand) Charter {
	c := charterFor(r)
	c.Grace = 0
	c.Limits = Limits{KeyBytes: 4, WaitersPerLock: 3 + r.Uint32N(9), EntriesPerSession: 20, Sessions: 6,
		SessionBytes: 1 << 20, GroupBytes: 1 << 20}
	return c
}

// budgetsFor returns budgets, which in half of the seeds are so small that the workload reaches
// them.
func budgetsFor(r *rand.Rand) (session, group uint64) {
	if r.IntN(2) == 0 {
		return 1 << 20, 1 << 20
	}
	return sessionCharge + r.Uint64N(6*(entryCharge+lockCharge+restCharge)), 1024 + r.Uint64N(12*sessionCharge)
}

func (w *workload) next() Command {
	r := w.rand
	if r.IntN(60) == 0 {
		w.term++
	}
	if len(w.sent) > 0 && r.IntN(8) == 0 {
		// Repeat one of the last few commands, or any earlier command.
		n := len(w.sent)
		if r.IntN(2) == 0 {
			n = min(n, 6)
		}
		return w.sent[len(w.sent)-1-r.IntN(n)]
	}
	c := w.fresh()
	w.sent = append(w.sent, c)
	return c
}

func (w *workload) fresh() Command {
	r := w.rand
	if !w.t.born {
		// Without a session no command can succeed, so any kind will do.
		if w.stays && r.IntN(8) == 0 {
			return Command{Kind: []Kind{InUse, Reserve, Refuse, Lapse, Downgrade, Lead}[r.IntN(6)], Session: 1, Number: 1,
				Token: 1, Record: []byte("ops"), Value: []byte("v"), Revision: 1, Count: 1,
				Proof: []Place{{Session: 1, Number: 1}}, Modes: []Mode{ModeS}}
		}
		return Command{Kind: Stamp + Kind(r.IntN(int(Put))), Session: 1, Number: 1, Nonce: Nonce{1}, Key: "k0",
			Token: 1, Version: 2}
	}
	switch n := r.IntN(100); {
	case n < 3:
		return Command{Kind: Stamp, WallUnixMS: w.t.charter.FoundedUnixMS + r.Int64N(100_000)}
	case n < 4:
		return Command{Kind: Born}
	case n < 6 && len(w.sent) > 40:
		return Command{Kind: EndGrace}
	case n < 7:
		return Command{Kind: Raise, Version: r.Uint32N(marksVersion + 1)}
	case n < 9:
		c := Command{Kind: Adopt, TTL: time.Duration(r.IntN(3)*r.IntN(12)) * time.Second,
			Settings: make([]byte, r.IntN(3))}
		if r.IntN(4) == 0 {
			c.SessionBytes, c.GroupBytes = budgetsFor(r)
		}
		return c
	case n < 11 && len(w.t.entries) > 0:
		e := w.t.entries[r.IntN(len(w.t.entries))]
		token := max(e.token+Token(r.IntN(2)*r.IntN(3)), 1)
		c := Command{Kind: Evict, Number: 3, Key: w.key(), Token: token, Record: make([]byte, r.IntN(3)),
			Value: make([]byte, r.IntN(3))}
		if w.guests && r.IntN(4) > 0 {
			c.Key = e.keys[r.IntN(len(e.keys))]
			c.Rights = rightsText(grants[1+r.IntN(len(grants)-1)]...)
		}
		return c
	case n < 14:
		key := w.key()
		c := Command{
			Kind: Put, Number: 4, Key: key, Revision: w.t.data[key].Revision * Revision(min(1, r.IntN(6))),
			Nonce: Nonce{1 + byte(r.IntN(20))}, Value: make([]byte, r.IntN(3)),
		}
		if w.stays && r.IntN(3) == 0 {
			w.guard(&c)
		} else if w.stays && r.IntN(2) == 0 {
			w.guard(&c)
			c = Command{Kind: SetValue, Number: 4, Key: c.Lock, Token: c.Token,
				Seq: 1 + r.Uint64N(6), Value: c.Value, Opener: Opener{Instance: [16]byte{byte(r.IntN(5) / 4)}}}
			w.asOpener(&c)
		}
		return c
	case n < 15:
		if len(w.t.entries) > 0 && len(w.t.sessions) > 0 && r.IntN(3) == 0 {
			return w.refuse()
		}
		if r.IntN(2) == 0 {
			c := Command{Kind: Reserve, Number: 5, Count: 1 + r.Uint32N(MaxReserved)}
			if c.Count%3 == 0 {
				c = Command{Kind: Lead, Number: 5, Record: []byte("ops"), Value: []byte("why")}
			}
			return c
		}
		return Command{Kind: markKind, Rules: 1 + r.Uint32N(marksVersion)}
	case n < 18 || len(w.t.sessions) == 0:
		return w.open()
	}
	return w.ofSession()
}

// guard gives a Put a hold that guards it, which may have ended, or may never have existed.
func (w *workload) guard(c *Command) {
	r := w.rand
	c.Lock, c.Token = w.key(), 1
	if len(w.t.entries) > 0 {
		e := w.t.entries[r.IntN(len(w.t.entries))]
		c.Lock, c.Token = e.keys[r.IntN(len(e.keys))], max(e.token+Token(r.IntN(8)/6), 1)
	}
}

// asOpener gives a SetValue of a workload with guests the opener of the hold, or another.
func (w *workload) asOpener(c *Command) {
	for _, e := range w.t.entries {
		if w.guests && e.token == c.Token && w.rand.IntN(4) > 0 {
			c.Opener = w.t.session(e.session).opener
		}
	}
}

// refuse returns a Refuse whose proof contains some of the requests, or all.
func (w *workload) refuse() Command {
	e := w.t.entries[w.rand.IntN(len(w.t.entries))]
	c := Command{Kind: Refuse, Session: e.session, Number: e.number}
	if w.rand.IntN(8) == 0 {
		c.Session++
	}
	for _, o := range w.t.entries {
		for i := range o.keys {
			if w.rand.IntN(8) > 0 && len(c.Proof) < MaxProof {
				c.Proof = append(c.Proof, Place{Session: o.session, Number: o.number, Key: uint8(i)})
			}
		}
	}
	if c.Proof == nil {
		c.Proof = []Place{{Session: e.session, Number: e.number}}
	}
	return c
}

func (w *workload) open() Command {
	c := w.openBare()
	if r := w.rand; w.guests {
		for _, s := range w.t.sessions {
			if s.nonce == c.Nonce && r.IntN(3) > 0 {
				c.Opener, c.Rights = s.opener, s.rights
				return c
			}
		}
		return guestOpen(c, byte(1+r.IntN(3)), grants[r.IntN(len(grants))]...)
	}
	return c
}

func (w *workload) openBare() Command {
	r := w.rand
	if len(w.openSet) > 0 && r.IntN(4) == 0 {
		return Command{Kind: Open, Nonce: w.openSet[r.IntN(len(w.openSet))], TTL: time.Second}
	}
	var nonce Nonce
	w.opened++
	nonce[0], nonce[15] = 1+w.opened, byte(r.IntN(256))
	w.openSet = append(w.openSet, nonce)
	return Command{Kind: Open, Nonce: nonce, Life: uint64(w.opened % 4), TTL: time.Duration(r.IntN(20)) * time.Second,
		Record: make([]byte, r.IntN(4))}
}

func (w *workload) ofSession() Command {
	r := w.rand
	s := w.t.sessions[r.IntN(len(w.t.sessions))]
	c := Command{Session: s.id, Epoch: s.epoch, Number: s.next + Number(r.IntN(3)/2)}
	if r.IntN(25) == 0 {
		c.Epoch += Epoch(r.IntN(3)) - 1
	}
	if r.IntN(60) == 0 {
		c.Session += SessionID(r.IntN(5))
	}
	if r.IntN(30) == 0 {
		c.Rules = 1 + r.Uint32N(marksVersion+1)
	}
	n := r.IntN(100)
	if w.stays && r.IntN(2) == 0 {
		n /= 2 // more requests and answers
	}
	switch {
	case n < 45:
		c.Kind, c.Key, c.Try = Acquire, w.key(), r.IntN(4) == 0
		if w.stays && r.IntN(4) == 0 {
			w.upgrade(&c, s)
		} else if w.stays && r.IntN(8) > 0 {
			w.stay(&c, s)
		} else if r.IntN(6) == 0 && len(w.t.entries) > 0 {
			w.takeUp(&c)
		} else if r.IntN(3) == 0 {
			c.Sticky, c.Mode = true, Mode(r.Uint32N(2))
		} else {
			w.shape(&c, s)
		}
		if r.IntN(10) == 0 {
			c.Number = Number(r.Uint64N(uint64(s.next) + 1))
		}
		if c.Owner >= c.Number {
			c.Owner, c.Inner, c.Upgrades = 0, 0, false
		}
		if c.Inner >= c.Number {
			c.Inner = 0
		}
	case n < 50:
		c.Kind = InUse
		c.Number = w.number(s)
		if e := w.t.find(s.id, c.Number); e != nil {
			c.Token, c.Revision = e.token+Token(r.IntN(3)), max(e.asked, 1)-Revision(r.IntN(8)/7)
		}
		if r.IntN(2) == 0 {
			w.answer(&c)
		}
		if r.IntN(4) == 0 {
			c.Kind, c.Value = Lapse, []byte("gone")
		}
		c.Token, c.Revision = max(c.Token, 1), max(c.Revision, 1)
	case n < 58:
		c.Kind = Detach
		c.Number = w.number(s)
		if r.IntN(3) == 0 {
			c.Value = []byte("gone")
		}
	case n < 85:
		c.Kind = []Kind{Release, Cancel, Cancel, Downgrade}[r.IntN(4)]
		c.Number = w.number(s)
		if c.Kind == Downgrade {
			w.lower(&c)
		}
	case n < 94:
		c.Kind = Attach
		c.Epoch = s.epoch + Epoch(r.IntN(4))
		c.Number = s.next + Number(r.IntN(3)) - Number(r.IntN(2))
		c.Live = w.live(s.id, c.Number)
		c.Since = uint64(s.epoch % 3)
		if s.epoch%4 == 1 {
			c.Former = bytes.Repeat([]byte{byte(s.epoch)}, MaxFormerBytes)
		}
		if c.Nonce = s.nonce; r.IntN(12) == 0 {
			c.Nonce[1]++ // a wrong nonce
		}
	case n < 96:
		c.Kind = Leaving
	case n < 97:
		c.Kind = Close
	default:
		c.Kind, c.Term = Expire, w.term-uint64(r.IntN(2))
		if r.IntN(2) == 0 {
			c.Cause, c.Record = []Cause{Revoked, Superseded}[r.IntN(2)], []byte("ops")
			c.Value = []byte([]string{"", "hangs"}[r.IntN(2)])
		}
	}
	return c
}

// shape sets optional fields of c in half of the calls.
func (w *workload) shape(c *Command, s twinSession) {
	r := w.rand
	if r.IntN(2) == 0 {
		return
	}
	switch r.IntN(4) {
	case 0:
		c.Mode = ModeIS
	case 1:
		c.Mode, c.Of = ModePermits, 2+r.Uint32N(3)
		if c.Permits = 1 + r.Uint32N(c.Of); r.IntN(4) == 0 { // the numbers of a mode, and no mode
			c.Permits, c.Of = (ModeIX + Mode(r.IntN(3))).Terms()
		}
	}
	if r.IntN(3) == 0 {
		keys := []string{c.Key, w.key(), w.key(), w.key()}
		slices.Sort(keys)
		keys = slices.Compact(keys)
		c.Key, c.Keys = keys[0], keys[1:]
	}
	if r.IntN(2) == 0 {
		c.Owner = w.number(s)
	}
	c.Notice = r.IntN(3) == 0
	c.Delay = time.Duration(max(0, r.IntN(6)-3)) * time.Second
	if r.IntN(6) == 0 {
		c.Most = 1 + r.Uint32N(3)
	}
	c.Value = make([]byte, r.IntN(3))
	if w.stays && r.IntN(3) == 0 {
		modes := make([]Mode, 1+len(c.Keys))
		for i := range modes {
			modes[i] = Mode(r.IntN(4))
		}
		if len(c.Keys) == 0 && c.Delay == 0 && r.IntN(3) == 0 {
			modes[0] = ModeU
		}
		c.Permits, c.Of = 0, 0
		c.setModes(modes)
	}
}

// stay makes c a sticky request, or a request with Try that may wait for a stay.
func (w *workload) stay(c *Command, s twinSession) {
	r := w.rand
	c.Try = r.IntN(6) > 0
	switch n := r.IntN(8); {
	case n < 3:
		c.Sticky, c.Mode = true, Mode(min(r.Uint32N(4), 1))
	case n < 6:
		w.shape(c, s)
	}
}

// answer makes c the answer of a stay that is asked, if there is one. It names the place of any
// request behind the stay.
func (w *workload) answer(c *Command) {
	for _, i := range w.rand.Perm(len(w.t.entries)) {
		e := w.t.entries[i]
		behind := w.t.behind(e)
		if e.asked == 0 || len(behind) == 0 {
			continue
		}
		c.Session, c.Epoch, c.Number = e.session, w.t.session(e.session).epoch, e.number
		c.Token, c.Revision = e.token+1+Token(w.rand.IntN(3)), behind[w.rand.IntN(len(behind))].place
		return
	}
}

// upgrade makes c the upgrade of a hold of the session, if there is one, or an upgradable request.
func (w *workload) upgrade(c *Command, s twinSession) {
	r := w.rand
	c.Notice = r.IntN(3) == 0
	for _, i := range r.Perm(len(w.t.entries)) {
		e := w.t.entries[i]
		if e.session != s.id || !e.upgradable() && r.IntN(8) > 0 || r.IntN(6) == 0 || e.number >= c.Number {
			continue
		}
		c.Try, c.Upgrades, c.Owner = false, true, e.number
		if c.Key = e.keys[0]; r.IntN(12) == 0 {
			c.Key = w.key()
		}
		if inner := w.number(s); r.IntN(2) == 0 && inner != c.Owner {
			c.Inner = inner
		}
		return
	}
	c.Mode = ModeU
	if r.IntN(4) == 0 {
		c.Owner = w.number(s)
	}
}

// lower gives a Downgrade modes that often lower some keys of the hold, and sometimes raise one.
func (w *workload) lower(c *Command) {
	e := w.t.find(c.Session, c.Number)
	if e == nil {
		c.Modes = []Mode{ModeIS}
		return
	}
	for _, mode := range e.modes {
		below := lowerModes(mode)
		if w.rand.IntN(12) == 0 || len(below) == 0 {
			below = []Mode{ModeX, ModeIS, ModeIX, ModeS, ModeU}
		}
		c.Modes = append(c.Modes, below[w.rand.IntN(len(below))])
	}
	if w.rand.IntN(20) == 0 {
		c.Modes = append(c.Modes, ModeIS)
	}
}

func (w *workload) takeUp(c *Command) {
	r := w.rand
	e := w.t.entries[r.IntN(len(w.t.entries))]
	c.Key, c.Try, c.Token = e.keys[r.IntN(len(e.keys))], false, max(e.token, 1)
	if r.IntN(10) == 0 {
		c.Key = w.key()
	}
	c.Notice, c.Delay, c.Value = r.IntN(3) == 0, time.Duration(r.IntN(2))*time.Second, make([]byte, r.IntN(2))
	if r.IntN(3) == 0 {
		c.Owner = Number(r.IntN(int(c.Number) + 1))
	}
}

// number returns the number of the request that a command should end. That request may already have
// ended, or may not exist yet.
func (w *workload) number(s twinSession) Number {
	var live []Number
	for _, e := range w.t.entries {
		if e.session == s.id {
			live = append(live, e.number)
		}
	}
	if len(live) == 0 || w.rand.IntN(8) == 0 {
		return Number(w.rand.Uint64N(uint64(s.next) + 2))
	}
	return live[w.rand.IntN(len(live))]
}

// live returns most of the session's live requests, and some numbers that are not live.
func (w *workload) live(id SessionID, next Number) []Range {
	var all []Range
	for n := Number(1); n < next; n++ {
		named := w.rand.IntN(20) == 0
		if w.t.find(id, n) != nil {
			named = w.rand.IntN(4) > 0
		}
		if !named {
			continue
		}
		if k := len(all); k > 0 && all[k-1].Last+1 == n && w.rand.IntN(4) > 0 {
			all[k-1].Last = n
		} else {
			all = append(all, Range{n, n})
		}
	}
	return all
}

func (w *workload) key() string {
	if w.rand.IntN(40) == 0 {
		bad := []string{"", "fives", "a\nb", "\xff", "\u0085", "\x7f", "\u00e4\u00e4", "\u20ac", "\ufffd",
			"\xed\xa0\x80"}
		return bad[w.rand.IntN(len(bad))]
	}
	return fmt.Sprint("k", w.rand.IntN(3))
}
