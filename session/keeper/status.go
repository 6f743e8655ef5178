package keeper

import "github.com/mortise-lock/mortise/session"

// Status describes a keeper at one moment, for people, programs and leak tests.
type Status struct {
	Term        uint64
	Leading     bool // it leads and its own first entry is applied
	Leader      session.Target
	Born        bool
	GraceOver   bool
	Sessions    int
	Attachments int
	Expiring    int
	Renewals    int // that are not confirmed
	Opens       int // that are not applied
	Peers       int // for which anything is kept
	Askers      int // peers that are told when a leader appears
}
