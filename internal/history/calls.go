package history

// reading files the events of each stream: the calls of callers, and the accounts of voters.
type reading struct{ *evidence }

func (j reading) readAll() error {
	j.keys, j.mutexes, j.kinds = map[string]int32{}, map[string]int32{}, map[string]int32{}
	accounts := map[Group]*account{}
	for i := range j.events {
		e := &j.events[i]
		if e.Stream < 0 || e.Stream > len(j.events) {
			return unknown("event %d is of stream %d", i, e.Stream)
		}
		for len(j.streams) <= e.Stream {
			j.streams = append(j.streams, stream{})
		}
		s := &j.streams[e.Stream]
		s.last = max(s.last, e.At)
		j.end = max(j.end, e.At)
		var err error
		switch e.Kind {
		case Header:
		case Dropped:
			err = unknown("%s dropped %d events", e.Node, e.Count)
		case Begin, Mark, Grant, Shared, End:
			err = j.readState(accounts, s, int32(i), e)
		default:
			err = j.readCall(s, int32(i), e)
		}
		if err != nil {
			return err
		}
	}
	for _, a := range accounts {
		j.groups = append(j.groups, a) // in a random order; joinAccounts sorts them
	}
	return nil
}

func (j reading) readCall(s *stream, i int32, e *Event) error {
	if e.Op == 0 || e.Op > uint64(4*len(j.events)+1000) {
		return unknown("%s: a %v of call %d, which is not a valid number", e.Node, e.Kind, e.Op)
	}
	for uint64(len(s.calls)) <= e.Op {
		s.calls = append(s.calls, newCall())
	}
	c := &s.calls[e.Op]
	if e.Kind != Call && c.called < 0 || e.Kind == Call && c.called >= 0 {
		return unknown("%s: a %v of call %d, which has begun %d times: events are missing, or two streams are mixed",
			e.Node, e.Kind, e.Op, min(c.called, 0)+1)
	}
	switch e.Kind {
	case Call:
		c.called, c.begun, c.set = i, e.At, j.set(e)
	case Return:
		c.ret, c.returned = i, e.At
	case Downgrade:
		if c.downgrade < 0 {
			c.downgrade, c.lowered = i, e.At
		}
	case Enter:
		j.entered = append(j.entered, entered{event: i, op: *c})
	case Unlock:
		if c.unlock < 0 {
			c.unlock, c.released = i, e.At
		}
	case Unlocked:
		if c.unlocked < 0 {
			c.unlocked, c.was = i, e.At
		}
	case Lost:
		if c.lost < 0 {
			c.lost, c.until = i, e.At
			if e.Until != 0 {
				c.until = min(e.Until, e.At)
			}
		}
	default:
		return unknown("%s: event %d has an unknown kind", e.Node, i)
	}
	return nil
}

func (j reading) readState(accounts map[Group]*account, s *stream, i int32, e *Event) error {
	a := s.account
	if a == nil || a.group != e.Group {
		if a = accounts[e.Group]; a == nil {
			a = &account{group: e.Group}
			accounts[e.Group] = a
		}
		s.account = a
		if e.Kind != Begin {
			return unknown("%s has events of group %x before a begin event", e.Node, uint64(e.Group))
		}
	}
	a.last = max(a.last, e.At)
	if e.Kind == Begin {
		if len(a.runs) == 0 || e.Rev < a.first {
			a.first = e.Rev
		}
		s.run = len(a.runs)
		a.runs = append(a.runs, run{from: e.Rev, to: e.Rev})
		return nil
	}
	r := &a.runs[s.run]
	r.to = max(r.to, e.Rev)
	if e.Kind == Mark {
		return nil
	}
	if e.Seq == 0 {
		j.carried, a.held = append(j.carried, i), true
		return nil
	}
	next := step{e.Index, e.Seq, i, e.At}
	if n := len(r.steps); n > 0 && next.compare(r.steps[n-1]) <= 0 {
		return j.broken(Agree, []int32{r.steps[n-1].event, i}, "%s applies the log of group %x backwards", e.Node,
			uint64(e.Group))
	}
	r.steps = append(r.steps, next)
	return nil
}
