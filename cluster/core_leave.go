package cluster

import (
	"cmp"
	"strings"
)

// Departure is how an instance leaves its group in good order: its replica votes, appends and
// acknowledges until a leader other than itself reports that a configuration without it is applied
// (rules 12 and 13). The zero Departure has asked no leader. It is not safe for concurrent use.
type Departure struct{ words string }

// Leaver is what an instance that leaves sees of itself.
type Leaver struct {
	Member   bool   // of a group that is born
	Raft     uint64 // of its replica; zero: it has none
	Votes    bool   // the replica votes, in the configuration that is applied here
	Leads    bool   // and leads
	Company  bool   // another replica of that configuration is connected
	TimeOver bool   // it may wait no longer
}

// Parting is how a departure goes on.
type Parting struct {
	Ask    bool   // ask the leader about the replica, and hand what it says to Heard
	Alone  bool   // it ends, and perhaps no instance is left to answer
	SeeOff bool   // before it ends, wait as long as Stays
	Lost   string // it ends, and a vote is lost to the instances that stay: the reason; empty: none is
}

// Next says what to do before a question to the leader.
func (d *Departure) Next(l Leaver) Parting {
	switch {
	case !l.Member:
		return Parting{Alone: true}
	case l.Raft == 0:
		return Parting{}
	case l.TimeOver:
		return Parting{Lost: d.lost(l)}
	}
	return Parting{Ask: true}
}

// Heard takes what the leader has said; nil means that no leader has answered for longer than an
// election takes. Then there is no instance to hand the vote to.
func (d *Departure) Heard(l Leaver, said *Counsel) Parting {
	switch {
	case said == nil && l.TimeOver: // what the leader said before holds
		return d.Next(l)
	case said == nil:
		d.words = ""
		return Parting{Alone: true, Lost: d.lost(l)}
	case said.AllLeaving:
		return Parting{Alone: true, SeeOff: true}
	case said.MayStop:
		return Parting{}
	}
	d.words = strings.Join(append([]string{said.Report.Next.Why}, said.Remarks...), "; ")
	return Parting{Ask: true}
}

// lost says why a vote is lost. Without a leader's word other instances are known to be here only
// by their connections.
func (d *Departure) lost(l Leaver) string {
	if !l.Votes || d.words == "" && !l.Company {
		return ""
	}
	return cmp.Or(d.words, "no leader has answered")
}

// Stays reports whether a leader that all leave still waits: it goes last, so that the others need
// not elect another one to be told that they may go.
func (l Leaver) Stays() bool { return l.Raft != 0 && l.Leads && l.Company }
