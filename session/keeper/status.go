package keeper

import "github.com/mortise-lock/mortise/session"

// Status describes a keeper at one moment, for people, programs and leak tests.
type Status struct {
	Term        uint64
	Leading     bool // it leads and has applied the first entry of its term
	Leader      session.Target
	Born        bool
	GraceOver   bool
	Sessions    int
	Attachments int
	Expiring    int
	Renewals    int // not confirmed
	Opens       int // not applied
	Peers       int // peers with something kept for them
	Askers      int // peers to redirect when a leader appears
}
