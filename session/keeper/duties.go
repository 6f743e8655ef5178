package keeper

import (
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// duties are the commands that the keeper itself proposes for the group. The bits allBound and
// graceDue say that a command is due, bornSent and graceSent that the log has accepted it.
type duties struct {
	allBound, bornSent  bool
	graceDue, graceSent bool
	adopt               *adoption
	raise               uint32 // the requested version; zero means none
	raising             uint32 // the highest version that was proposed in this term
}

type adoption struct {
	ttl      time.Duration
	settings []byte
	budgets  session.Budgets
}

// forget begins another term. That all instances are bound remains true in it.
func (d *duties) forget() { *d = duties{allBound: d.allBound} }

func (d *duties) due(born bool) bool {
	return d.bornDue(born) || d.graceDue && !d.graceSent ||
		born && (d.adopt != nil || d.raise != 0) // the group refuses them before Born
}

func (d *duties) bornDue(born bool) bool { return d.allBound && !d.bornSent && !born }

// endGrace is called when the grace has passed.
func (d *duties) endGrace() {
	if !d.graceSent {
		d.graceDue = true
	}
}

// append adds the commands that are due.
func (d *duties) append(blob []byte, born bool) []byte {
	if d.bornDue(born) {
		blob = lockfsm.Command{Kind: lockfsm.Born}.Append(blob)
	}
	if d.graceDue && !d.graceSent {
		blob = lockfsm.Command{Kind: lockfsm.EndGrace}.Append(blob)
	}
	if a := d.adopt; a != nil && born {
		blob = lockfsm.Command{
			Kind: lockfsm.Adopt, TTL: a.ttl, Settings: a.settings, SessionBytes: a.budgets.Session,
			GroupBytes: a.budgets.Group,
		}.Append(blob)
	}
	if d.raise != 0 && born {
		blob = lockfsm.Command{Kind: lockfsm.Raise, Version: d.raise}.Append(blob)
		d.raising = max(d.raising, d.raise)
	}
	return blob
}

// accepted is called when the log has accepted the commands of append.
func (d *duties) accepted(born bool) {
	d.bornSent = d.bornSent || d.allBound
	d.graceSent = d.graceSent || d.graceDue
	if born {
		d.adopt, d.raise = nil, 0
	}
}
