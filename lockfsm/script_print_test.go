package lockfsm

import (
	"fmt"
	"strings"
	"time"
)

// rev returns the distance of a revision or token from the first revision of the group.

func (s *script) rev(r uint64) uint64 { return r - uint64(s.m.charter.firstRevision()) }

func (s *script) label(id SessionID) string {
	for _, name := range s.labels {
		if s.names[name] == id {
			return name
		}
	}
	return "nobody"
}

func (s *script) result(r Result) string {
	var b strings.Builder
	b.WriteString(r.Code.String())
	switch {
	case r.Code == Granted:
		fmt.Fprintf(&b, ", token %d", s.rev(uint64(r.Token)))
		b.WriteString(s.reserved(r.Token, r.Last) + included(r.Grant))
	case r.Code == Waiting:
		b.WriteString(s.behind(r.Watch))
	case r.Code == Held:
		b.WriteString(s.by(r.Holder))
	case r.Code == Deadlock:
		for i, link := range r.Circle {
			fmt.Fprintf(&b, "%s %s waits for %s", []string{":", ","}[min(i, 1)], s.label(link.Session), link.Key)
		}
	case r.Budget != 0:
		fmt.Fprintf(&b, " of %d bytes", r.Budget)
	case r.Kind == Open && r.Code == Done:
		fmt.Fprintf(&b, ", session %s, TTL %v", s.label(r.Session), r.TTL)
	case r.Kind == Expire && r.TTL > 0:
		fmt.Fprintf(&b, ", locks stay taken for %v", r.TTL)
	case r.Kind == Reserve && r.Code == Done:
		fmt.Fprintf(&b, ", revisions %d to %d", s.rev(uint64(r.Token)), s.rev(uint64(r.Last)))
	case r.Detached != 0:
		fmt.Fprintf(&b, ", stays as %s for %v", s.label(r.Detached), r.TTL)
	case r.Data != nil && r.Data.Revision != 0:
		fmt.Fprintf(&b, ", it is %q, revision %d", r.Data.Value, s.rev(uint64(r.Data.Revision)))
	}
	if e := r.Evicted; e != nil && e.Taker != nil {
		fmt.Fprintf(&b, ", taken over from %s/%d", s.label(e.Session), e.Number)
	} else if e != nil && r.Kind == Expire {
		fmt.Fprintf(&b, ", %s is over by %q: %q", s.label(e.Session), e.By, e.Reason)
	} else if e != nil {
		fmt.Fprintf(&b, ", %s/%d is over by %q: %q", s.label(e.Session), e.Number, e.By, e.Reason)
	}
	b.WriteString("\n")
	for _, c := range r.States {
		fmt.Fprintf(&b, "  live:  %s/%d %s\n", s.label(c.Session), c.Number, s.change(c))
	}
	for _, c := range r.Fired {
		fmt.Fprintf(&b, "  fired: %s/%d %s\n", s.label(c.Session), c.Number, s.change(c))
	}
	return b.String()
}

func (s *script) usage() string {
	u := s.m.Usage()
	text := fmt.Sprintf("group: %d of %d bytes\n", u.Bytes, u.Budget)
	for each := s.m.sessions.first; each != nil; each = each.after {
		text += fmt.Sprintf("%s: %d of %d bytes\n", s.label(each.id), each.charged, s.m.charter.Limits.SessionBytes)
	}
	return text
}

func (s *script) events() string {
	first := s.m.history.position(s.m.history.events.from)
	events, _, _ := s.m.Since(first, NewPrefixes(""), eventsKept)
	return s.told(events)
}

func (s *script) ends() string { return s.told(s.m.Ends()) }

func (s *script) told(events []Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%d: %s ", e.Position-s.m.history.position(0), e.Key)
		what := []string{"", "held", "free", "left", "written", "valued", "lowered", "upgraded",
			"the lead is moved"}[e.What]
		switch {
		case e.What == Wrote:
			fmt.Fprintf(&b, "%s %q", what, e.How.Data.Value)
		case e.What == Moved:
			b.WriteString(what)
		default:
			fmt.Fprintf(&b, "%s token %d of %s,%s", what, s.rev(uint64(e.Token)), s.label(e.Session), spelledPart(&e))
			if e.Cause != 0 {
				b.WriteString(", " + []string{"", "released", "expired", "closed", "evicted", "taken up", "revoked",
					"superseded"}[e.Cause])
			}
		}
		if e.How != nil && len(e.How.Reason) > 0 {
			fmt.Fprintf(&b, " by %q: %q", e.How.By, e.How.Reason)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (s *script) by(h *Holder) string {
	if h.Token == 0 {
		return fmt.Sprintf(" by %s, which waits for another key", s.label(h.Session))
	}
	since := time.Duration(h.SinceUnixMS-s.m.charter.FoundedUnixMS) * time.Millisecond
	text := fmt.Sprintf(" by %s (record %q), token %d, since %v after the founding, %d waiting",
		s.label(h.Session), h.Record, s.rev(uint64(h.Token)), since, h.Waiters)
	if len(h.Value) > 0 {
		text += fmt.Sprintf(", value %q", h.Value)
	}
	if h.Kept {
		text += ", kept"
	}
	if h.Key != "" {
		text += ", which has " + h.Key
	}
	return text
}

func (s *script) reserved(token, last Token) string {
	if last == 0 {
		return ""
	}
	return fmt.Sprintf(", callers get %d to %d", s.rev(uint64(token))+1, s.rev(uint64(last)))
}

func (s *script) change(c Change) string {
	switch {
	case c.Held != nil:
		return "held" + s.by(c.Held)
	case c.Token != 0:
		text := fmt.Sprintf("granted, token %d%s", s.rev(uint64(c.Token)), s.reserved(c.Token, c.Last))
		if c.Wanted {
			text += ", a request waits"
		}
		if c.Asked != 0 {
			text += fmt.Sprintf(", asked for %d", s.rev(uint64(c.Asked)))
		}
		return text + included(c.Grant)
	}
	return "waiting" + s.behind(c.Watch)
}

// included spells the grant of a resumed hold.
func included(g *Grant) string {
	if g == nil {
		return ""
	}
	text := ", includes"
	for i, key := range append([]string{g.Key}, g.Keys...) {
		if text += " " + key; g.Modes != nil {
			text += " " + modeNames[g.Modes[i]]
		}
	}
	if g.Permits != 0 {
		text += fmt.Sprintf(", permits %d/%d", g.Permits, g.Of)
	}
	if g.Delay != 0 {
		text += fmt.Sprintf(", delay %v", g.Delay)
	}
	if len(g.Value) > 0 {
		text += fmt.Sprintf(", value %q", g.Value)
	}
	return text
}

func (s *script) behind(watch Revision) string {
	if watch == 0 {
		return ", watches none"
	}
	return fmt.Sprintf(", watches %d", s.rev(uint64(watch)))
}

func terms(e *entry) (text string) {
	switch e.mode {
	case ModeX:
	case ModeIS:
		text = " shared"
	case ModePermits:
		permits, of := e.shares()
		text = fmt.Sprintf(" %d/%d", permits, of)
	default:
		text = " " + modeNames[e.mode]
	}
	switch {
	case e.told:
		text += " told"
	case e.notice:
		text += " to be told"
	}
	if e.try {
		text += " try"
	}
	if e.resumed() {
		text += " resumed"
	}
	if e.extra == nil {
		return text
	}
	if e.extra.seq != 0 {
		text += fmt.Sprintf(" value %q, change %d", e.extra.value, e.extra.seq)
	}
	if e.sticky() {
		text += " sticky"
	}
	if n := len(e.extra.entries); n > 0 {
		text += fmt.Sprintf(" in %d queues", n)
	}
	if e.extra.delayMS != 0 {
		text += fmt.Sprintf(" delay %v", time.Duration(e.extra.delayMS)*time.Millisecond)
	}
	if e.upgrades() {
		return text + fmt.Sprintf(" upgrades %d", e.extra.owner)
	}
	if e.extra.owner != 0 {
		text += fmt.Sprintf(" under %d", e.extra.owner)
	}
	return text
}

func (s *script) state() string {
	m := s.m
	var b strings.Builder
	phase := "granting"
	switch {
	case m.failed != nil:
		phase = "failed: " + m.failed.Error()
	case !m.born:
		phase = "unborn"
	case !m.graceOver:
		phase = "in grace"
	}
	fmt.Fprintf(&b, "| revision %d, rules %d, %s\n", s.rev(uint64(m.rev)), m.charter.Rules, phase)
	if c := m.charter; c.SessionTTL != s.founded.SessionTTL || string(c.Settings) != string(s.founded.Settings) {
		fmt.Fprintf(&b, "| TTL %v, settings %q\n", c.SessionTTL, c.Settings)
	}
	for x := m.sessions.first; x != nil; x = x.after {
		fmt.Fprintf(&b, "| session %s: epoch %d, next %d", s.label(x.id), x.epoch, x.next)
		if x.ttl > m.charter.SessionTTL {
			fmt.Fprintf(&b, ", TTL %v", x.ttl)
		}
		if x.gone {
			b.WriteString(", gone")
		}
		if x.leaving {
			b.WriteString(", leaving")
		}
		b.WriteString("\n")
	}
	for l := m.locks.first; l != nil; l = l.next {
		fmt.Fprintf(&b, "| %s:", l.key)
		if l.data != nil {
			fmt.Fprintf(&b, " %q at %d", l.data.Value, s.rev(uint64(l.data.Revision)))
		}
		for e := l.first; e != nil; e = e.after {
			if e != l.first {
				b.WriteString(" <-")
			}
			fmt.Fprintf(&b, " [%d %s/%d", s.rev(uint64(e.rev)), s.label(e.session.id), e.number)
			if e.token != 0 {
				fmt.Fprintf(&b, " token %d", s.rev(uint64(e.token)))
			}
			b.WriteString(terms(e))
			if e.stays() {
				fmt.Fprintf(&b, " to %d", s.rev(uint64(e.stay().last)))
			}
			if e.stays() && e.stay().asked != 0 {
				fmt.Fprintf(&b, " asked %d", s.rev(uint64(e.stay().asked)))
			}
			b.WriteString("]")
		}
		b.WriteString("\n")
	}
	return b.String()
}
