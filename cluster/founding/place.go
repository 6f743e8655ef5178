package founding

import (
	"cmp"
	"slices"
	"time"
)

// Outcome is the result of a question.
type Outcome uint8

// The outcomes of a question.
const (
	Silent   Outcome = iota // no answer in time; never counts as a refusal
	Answered                // the asked instance answered
	Refused                 // the machine exists, but nothing listens at the address
	Foreign                 // a program that is no instance of this cluster listens there
	Other                   // an instance other than the asked one answered
)

type place struct {
	addr    string
	entry   string // Join entry that resolves to the address; empty if none does
	pending uint64 // ID of the pending question; zero means none
	next    time.Duration
	last    lastResult

	// the address belongs to a voter or a listed instance, or was this instance's last address
	near  bool
	told  bool // gossip, a question or an answer has named the address
	tried bool // a question has ended, with any outcome
	ended time.Duration
	mute  bool   // the last question got no answer
	why   string // why the last question got no answer; empty if unknown
	watch bool   // the address is asked repeatedly while it is asked at all
}

// lastResult is the last result from an address, other than silence.
type lastResult struct {
	outcome Outcome
	asked   time.Duration // when the question was sent
	got     time.Duration
	first   time.Duration // when the incarnation in info was first met here
	info    InstanceInfo
	why     string // reason for outcome Foreign; empty if unknown
}

func (s *lastResult) fresh(now, limit time.Duration) bool {
	return s.outcome != Silent && now-s.asked <= limit
}

func (p *place) seen(now, limit time.Duration) (*InstanceInfo, bool) {
	if p.last.outcome != Answered || !p.last.fresh(now, limit) {
		return nil, false
	}
	return &p.last.info, true
}

func (p *place) seenSince(after, now time.Duration) (*InstanceInfo, bool) {
	who, ok := p.seen(now, reachedFor)
	return who, ok && p.last.asked > after
}

func (p *place) label() string {
	switch {
	case p.last.outcome == Answered:
		return nameOf(p.last.info.Name, p.addr)
	case p.entry != "" && p.entry != p.addr:
		return p.entry + " (" + p.addr + ")"
	}
	return p.addr
}

type kept struct {
	entry      string
	near, told bool
}

// begin sets from which sources the address is known now.
func (p *place) begin(why kept) { p.entry, p.near, p.told = why.entry, why.near, why.told }

// also adds a source of the address.
func (p *place) also(why kept) { p.near, p.told = p.near || why.near, p.told || why.told }

// pause sets the time before which the address is not asked again.
func (p *place) pause(next time.Duration) { p.next = next }

// observe sets whether the address is asked repeatedly.
func (p *place) observe(watch bool) { p.watch = watch }

// ask records the ID of a question, and the time before which the address is not asked again.
func (p *place) ask(question uint64, next time.Duration) { p.pending, p.next = question, next }

// end records that the pending question has ended, and why it got no answer.
func (p *place) end(now time.Duration, outcome Outcome, why string) {
	p.pending, p.tried, p.ended, p.mute, p.why = 0, true, now, outcome == Silent, why
}

// record replaces the last result.
func (p *place) record(last lastResult) { p.last = last }

// JoinFunc is the name of the entry whose addresses a function of the user returns.
const JoinFunc = "Config.JoinFunc"

// Entry is an entry of Join, or the function JoinFunc, with the addresses to which it resolves.
type Entry struct {
	Name     string        // as written in Join
	Addrs    []string      // host:port each; empty if the name does not exist, which is no failure
	Failed   string        // why the entry could not be resolved; empty if it was resolved
	Resolved time.Duration // time of the lookup
}

// Unresolved says that the addresses of the entry are not known, with the reason and the way out.
func (e *Entry) Unresolved() string {
	switch {
	case e.Name == JoinFunc && e.Failed == "":
		return JoinFunc + " has not returned yet"
	case e.Name == JoinFunc:
		return "Config.JoinFunc fails: " + e.Failed + ": correct it; it must return the host:port of other instances"
	case e.Failed == "":
		return e.Name + ", which Join names, cannot be resolved"
	}
	return e.Name + ", which Join names, cannot be resolved: " + e.Failed + ": correct the entry, or its lookup"
}

// unknown reports whether it is not known to which addresses the entry resolves now.
func (e *Entry) unknown(now time.Duration) bool {
	return e.Failed != "" || now-e.Resolved > resolvedFor
}

// clone returns a copy that shares nothing with e.
func (e Entry) clone() Entry {
	e.Addrs = slices.Clone(e.Addrs)
	return e
}

// refresh takes over the outcome of a lookup that has found the same addresses.
func (e *Entry) refresh(found Entry) { e.Failed, e.Resolved = found.Failed, found.Resolved }

func find(places []*place, addr string) (int, bool) {
	return slices.BinarySearchFunc(places, addr, func(p *place, a string) int { return cmp.Compare(p.addr, a) })
}
