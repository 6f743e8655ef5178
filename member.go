package mortise

import "time"

// Member is one instance of the group, or a guest, as the leader lists it. Texts that a member
// reports about itself are escaped: a control character is shown as \u{1b}.
type Member struct {
	Name     string
	Instance string // proved ID of its present incarnation
	Address  string // "" if it does not listen
	Zone     string
	Votes    bool // it is a voter, not a learner

	// The following fields are set only in the results of Node.Members and in Status.

	Version string    `json:",omitempty"` // version of mortise in its build; "" if not reported
	Tier    Tier      `json:",omitempty"`
	For     string    `json:",omitempty"` // the name in its derived secret or certificate; "" for the root tier
	Session string    `json:",omitempty"` // ID of its session; Members(ctx, Session) begins with the next member
	Since   time.Time `json:",omitzero"`  // when it became a member, by its own clock; zero if not reported
	Leaving bool      `json:",omitempty"` // it is about to leave

	// Seen means that this instance is connected to the member, or that gossip lists the member as
	// alive. It is set only in Status.Voters; in Health.Missing, see MissingVoter.
	Seen bool `json:",omitempty"`
}

// Tier is the class of rights of a secret or certificate.
type Tier string

// The tiers.
const (
	TierRoot   Tier = "root"   // the root secret: the instance may found, vote and serve
	TierMember Tier = "member" // a secret derived with -member: the instance locks, but never votes or serves
	TierGuest  Tier = "guest"  // any other derived secret: a program that only takes locks, not an instance
)
