package history

import "math"

type stream struct {
	calls   []call // by op; calls[0] is unused
	last    int64
	account *account // nil for a caller's stream
	run     int
}

// call is one call for keys, and the events of its lock. A missing event is -1.
type call struct {
	set                                 int32
	called, ret, unlock, unlocked, lost int32
	// the times of called, ret, unlock, lost and unlocked, in this order
	begun, returned, released, until, was int64

	downgrade int32 // the event from which on the caller acts as a reader
	lowered   int64 // its time
}

// entered is an event Enter, and what its stream had recorded of the call before it.
type entered struct {
	event int32
	op    call
}

func newCall() call {
	return call{
		set: -1, called: -1, ret: -1, unlock: -1, unlocked: -1, lost: -1,
		begun: math.MaxInt64, returned: math.MaxInt64, released: math.MaxInt64, until: math.MaxInt64,
		downgrade: -1, lowered: math.MaxInt64,
	}
}

// believed returns the time until which the caller believed that it held the lock, and the event
// that ended the belief, or -1.
func (c *call) believed() (int64, int32) {
	if c.released <= c.until {
		return c.released, c.unlock
	}
	return c.until, c.lost
}

// believedAlone returns what believed returns, for the belief that the caller holds the lock
// exclusively.
func (c *call) believedAlone() (int64, int32) {
	if at, because := c.believed(); at <= c.lowered {
		return at, because
	}
	return c.lowered, c.downgrade
}

func (j *judge) readAll() error {
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

func (j *judge) readCall(s *stream, i int32, e *Event) error {
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
