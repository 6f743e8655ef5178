package keeper

import "github.com/mortise-lock/mortise/internal/nodeid"

// Status describes a keeper at one moment.
type Status struct {
	Term        uint64
	Leading     bool // it leads and has applied the first entry of its term
	Leader      nodeid.Endpoint
	Born        bool
	GraceOver   bool
	Sessions    int
	Attachments int
	Expiring    int
	Renewals    int // not confirmed
	Opens       int // not applied
	Peers       int // peers with state in the keeper
	Askers      int // peers to redirect when a leader appears
}
