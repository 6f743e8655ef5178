package client

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

const (
	frameBytes   = 256 << 10
	windowBytes  = 1 << 20 // the most bytes of unanswered commands
	requestBytes = 64      // the size of a command without its key, rounded up
)

// Output is the output of a core. The shell must first mark the holds of OutcomeLost and
// OutcomeInDoubt, then publish Deadline, then deliver the other outcomes, and then send the frame.
// So every lost hold is marked before a caller can see the new deadline. And a new hold does not
// seem expired, because its caller receives it only after the deadline is published.
type Output struct {
	// Outcomes is valid until the next call of Flush.
	Outcomes []Outcome
	// Deadline is when all holds are lost if no renewal is acknowledged earlier. Zero means that
	// there is no session.
	Deadline clock.Time
	// Safe is when the lease enters jeopardy if no renewal is acknowledged earlier.
	Safe clock.Time
	// To, Renewals and Commands are one frame. There is no frame if Renewals and Commands are
	// empty. The sender owns the bytes. If the frame cannot be sent, SendFailed must be called.
	To                 nodeid.Endpoint
	Renewals, Commands []byte
	More               bool
}

// likely predicts the output of a turn.
type likely struct {
	commands int // bytes in the frame
	outcomes int
	frees    int
}

type frame struct {
	renewals, commands []byte
	likely             int
}

// Flush returns the output of a turn. It must be called after Tick, with the same time. The frame
// counts as sent at now, so the clock must be read before the call.
func (c *Core) Flush(now clock.Time) Output {
	out := Output{Outcomes: c.outcomes, Deadline: c.pulse.lease.deadline(), Safe: c.pulse.lease.safe()}
	c.outcomes, c.told = session.Emptied(c.told, &c.likely.outcomes), c.outcomes
	f := frame{likely: c.likely.commands}
	if c.askDue {
		c.writeQuestion(now, &f)
	}
	if c.phase == Attached || c.phase == Attaching && c.finder.pipeline {
		out.More = c.writeCommands(now, &f)
	}
	if c.pulse.due {
		c.writeRenewal(now, &f)
	}
	if len(f.commands) > 0 {
		c.likely.commands = session.Likely(c.likely.commands, len(f.commands))
	}
	out.To, out.Renewals, out.Commands = c.finder.target, f.renewals, f.commands
	return out
}

func (c *Core) writeQuestion(now clock.Time, f *frame) {
	c.askDue = false
	if c.phase == Opening {
		c.opening.asks(now, c.finder.target.ID)
		f.command(lockfsm.Command{Kind: lockfsm.Open, Nonce: c.opening.nonce, TTL: c.askTTL, Record: c.record})
		return
	}
	c.epoch++
	c.firstNew = c.number
	f.command(lockfsm.Command{Kind: lockfsm.Attach, Session: c.session, Epoch: c.epoch, Number: c.number,
		Nonce: c.opening.proof, Since: c.opening.since, Former: c.opening.former,
		Live: c.live(now)})
	c.pulse.renewals.Forget()
	c.dropAnswers() // the leader asks again
	c.writeRenewal(now, f)
}

// live returns the numbers that the Attach must name. These are the numbers of all sent entries,
// except entries that are being freed and not named.
func (c *Core) live(now clock.Time) []lockfsm.Range {
	var live []lockfsm.Range
	c.counts.unasked()
	for e := c.sent.head; e != nil; e = e.next {
		e.open, e.asked = 0, now
		if e.freeing && !e.named() {
			e.rarely().left = c.epoch
			continue
		}
		if n := len(live); n > 0 && live[n-1].Last+1 == e.number {
			live[n-1].Last = e.number
			continue
		}
		live = append(live, lockfsm.Range{First: e.number, Last: e.number})
	}
	return live
}

func (c *Core) writeRenewal(now clock.Time, f *frame) {
	r := session.Renewal{Session: c.session, Epoch: c.epoch, Seq: c.pulse.renews(now), Heard: c.pulse.renewals.heard}
	f.renewals = r.Append(f.renewals)
	for _, command := range c.later.sends(c.session, c.epoch) {
		f.command(command)
	}
}

// writeCommands writes the commands that are due and fit into the frame: first commands that free
// entries, then downgrades and requests, then Leaving and Close. It reports whether another frame
// must follow immediately.
func (c *Core) writeCommands(now clock.Time, f *frame) (more bool) {
	c.writeAnswers(f)
	done := 0
	for _, e := range c.frees {
		if len(f.commands) >= frameBytes {
			break
		}
		c.writeFor(now, f, e, e.freed())
		e.due = false
		done++
	}
	if done == len(c.frees) {
		c.frees = session.Emptied(c.frees, &c.likely.frees)
	} else {
		c.frees = slices.Delete(c.frees, 0, done)
	}
	if len(c.frees) > 0 || c.writeDowngrades(now, f) {
		return true
	}
	if !c.pulse.lease.short(now) { // with little of the lease left, a grant would have to be released
		for c.unsent.head != nil && c.counts.open < windowBytes {
			if len(f.commands) >= frameBytes {
				return true
			}
			c.writeRequest(now, f)
		}
	}
	if c.ending.saysLeaving(c.epoch) {
		f.command(lockfsm.Command{Kind: lockfsm.Leaving, Session: c.session, Epoch: c.epoch})
	}
	if c.ending.saysClose(c.epoch) {
		f.command(lockfsm.Command{Kind: lockfsm.Close, Session: c.session, Epoch: c.epoch})
	}
	return false
}

// writeDowngrades writes the downgrades that were not sent on this attachment. It reports whether
// some of them did not fit into the frame.
func (c *Core) writeDowngrades(now clock.Time, f *frame) (more bool) {
	for _, l := range c.lowering {
		e := l.entry
		switch {
		case e.seldom().lowered == c.epoch:
		case len(f.commands) >= frameBytes:
			return true
		default:
			e.rarely().lowered = c.epoch
			c.writeFor(now, f, e, lockfsm.Command{Kind: lockfsm.Downgrade, Modes: l.modes})
		}
	}
	return false
}

func (c *Core) writeAnswers(f *frame) {
	for _, a := range c.answers {
		cmd := lockfsm.Command{Session: c.session, Epoch: c.epoch, Number: a.entry.number,
			Token: a.token}
		switch {
		case a.why != "" && c.sentAs(a.entry.number) == a.entry: // before its Release, which is in c.frees
			cmd.Kind, cmd.Value = lockfsm.Lapse, []byte(a.why)
		case a.why == "" && a.request.stage == stageHeld:
			cmd.Kind, cmd.Revision = lockfsm.InUse, a.place
		default:
			continue
		}
		f.command(cmd)
	}
	clear(c.answers)
	c.answers = c.answers[:0]
}

// dropAnswers drops what the leader asks again. Lapses are kept.
func (c *Core) dropAnswers() {
	c.answers = slices.DeleteFunc(c.answers, func(a stayAnswer) bool { return a.why == "" })
}

// due reports whether a Release, Cancel or Detach did not fit into the last frame.
func (c *Core) due() bool { return len(c.frees) > 0 && c.linked() }

// freed returns the command that frees an entry. The caller sets its session, epoch and number.
func (e *entry) freed() lockfsm.Command {
	switch {
	case e.stays:
		return lockfsm.Command{Kind: lockfsm.Detach, Value: []byte(e.seldom().lapsed)}
	case e.req == nil:
		return lockfsm.Command{Kind: lockfsm.Cancel} // the effect is that of Release, but the event log is clearer
	}
	return lockfsm.Command{Kind: lockfsm.Release}
}

func (c *Core) writeRequest(now clock.Time, f *frame) {
	e := c.unsent.head
	c.unsent.remove(e)
	e.number = c.number
	c.number++
	c.index(e)
	c.sent.pushBack(e)
	command := e.req.command()
	c.later.adds(&command)
	c.writeFor(now, f, e, command)
}

func (c *Core) writeFor(now clock.Time, f *frame, e *entry, cmd lockfsm.Command) {
	cmd.Session, cmd.Epoch, cmd.Number = c.session, c.epoch, e.number
	before := len(f.commands)
	f.command(cmd)
	size := len(f.commands) - before
	e.asked = now
	e.open += int32(size)
	if c.counts.open == 0 {
		c.pulse.heard(now)
	}
	c.counts.asked(size)
}

func (f *frame) command(cmd lockfsm.Command) {
	if f.commands == nil {
		f.commands = make([]byte, 0, f.likely+requestBytes)
	}
	f.commands = cmd.Append(f.commands)
}
