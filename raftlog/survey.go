package raftlog

import "time"

// Progress is what a leader knows of one replica.
type Progress struct {
	// ID names it.
	ID uint64
	// Active is set while this leader has heard of it within an election timeout. What an earlier lead heard does not count.
	Active bool
	// SilentFor is how long nothing was heard of it, at most since this lead began, or since it came in.
	SilentFor time.Duration
	// CaughtUp is set while it takes in what is sent and lacks at most 64 entries.
	CaughtUp bool
	// Full is set while all that the leader has is acknowledged by it or on its way to it, with nothing known to be lost.
	Full bool
	// Settled is set once it knows that the configuration is committed: it has acknowledged an entry that was proposed after the leader had
	// applied the configuration, and that came with the commit index.
	Settled bool
}

// Survey is how a leader sees its group.
type Survey struct {
	Term     uint64        // in which this replica leads and Leads was called, 0: in none, and then nothing below Config is filled in
	Self     uint64        // this replica
	Config   Configuration // as last applied here
	Pending  bool          // a change is proposed and not applied, or the configuration is joint, or the lead is being handed over
	Replicas []Progress    // all of Config, this one too, by ID
}
