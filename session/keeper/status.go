package keeper

import "github.com/mortise-lock/mortise/internal/nodeid"

// Status describes a keeper at one moment.
type Status struct {
	Term        uint64
	Leading     bool // the keeper leads and has applied the first entry of its term
	Leader      nodeid.Endpoint
	Born        bool
	GraceOver   bool
	Sessions    int
	Attachments int
	Expiring    int
	Renewals    int // renewals that are not confirmed
	Opens       int // commands of the kind Open that are not applied
	Peers       int
	Askers      int // peers to redirect when a leader appears
}
