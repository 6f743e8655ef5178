package mortise

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// This file is the view of who belongs to the group. The leader's table of sessions is that view:
// every instance opens one session, and so does every program that only takes locks. The leader is
// asked for a page at a time, when a person or a program wants to see it.

// Member is one instance of the group, or a program that only takes locks, as the leader has it.
// What it says of itself is escaped: a control character is shown as \u{1b}. It is a value of its
// own.
type Member struct {
	Name     string
	Instance string // ID of its present life, which it has proved
	Address  string // "" if it listens nowhere
	Zone     string
	Votes    bool // it is a voter; learners are not

	// The following are set in what Members and Status.Members return.

	Version string    `json:",omitempty"` // of this library in its build, as it says; "" if it has not said
	Tier    Tier      `json:",omitempty"`
	For     string    `json:",omitempty"` // the name in its derived secret or certificate; "" of the root tier
	Session string    `json:",omitempty"` // ID of its session: a walk can go on behind it
	Since   time.Time `json:",omitzero"`  // when it became a member, as its own clock says; zero if it has not said
	Leaving bool      `json:",omitempty"` // it is about to leave

	// Seen is set in Status.Voters only: this instance has a connection with it, or gossip sees it.
	Seen bool `json:",omitempty"`
}

// Members goes through the members of the group, those with the oldest session first. It asks the
// leader for a hundred at a time, and waits for one until ctx ends. after is the Session of the
// member behind which the walk begins, or "" for the first one. A member that is there from the
// beginning of the walk to its end is listed once. An instance that has lost a session and opened
// another is listed with both until the first one has expired.
//
// After an error, which comes with a zero Member, the walk ends. Without a leader Status has the
// last picture. The members are for people and for monitoring: nothing may be decided by them. It
// is safe for concurrent use.
func (n *Node) Members(ctx context.Context, after string) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		from, err := cursorBehind(after)
		if err != nil {
			yield(Member{}, err)
			return
		}
		for more := true; more; {
			page, err := n.membersPage(ctx, &query.PageRequest{From: from})
			if err != nil {
				yield(Member{}, err)
				return
			}
			for _, m := range membersOf(page) {
				if !yield(m, nil) {
					return
				}
			}
			more, from = page.More, page.From
		}
	}
}

// cursorBehind returns the place behind a session, as Member.Session names it.
func cursorBehind(session string) (*query.SessionCursor, error) {
	if session == "" {
		return nil, nil
	}
	id, err := strconv.ParseUint(session, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: Members: %q is no session: after is the Session of a Member", ErrBadRequest, session)
	}
	return &query.SessionCursor{At: id, Past: id}, nil
}

// membersPage asks the leader for a page, and keeps it as the last picture if it is the first page.
func (n *Node) membersPage(ctx context.Context, q *query.PageRequest) (*query.MemberList, error) {
	page, err := look(ctx, n, query.QueryClient.Members, q)
	if err == nil {
		if n.config.unreachable() { // what it has in place of an address leads nowhere
			for i := range page.Members {
				page.Members[i].Addr = ""
			}
		}
		n.engine.KeepPage(page, q.From.GetAt() == 0 && q.From.GetPast() == 0)
	}
	return page, err
}

// membersOf is what people are told of a page.
func membersOf(page *query.MemberList) []Member {
	list := make([]Member, 0, len(page.Members))
	for _, m := range page.Members {
		one := Member{
			Name: plain.Text(m.Name), Instance: queries.ID(m.Instance).String(), Address: plain.Text(m.Addr), Zone: plain.Text(m.Zone), Version: plain.Text(m.Version),
			Votes: m.Votes, Tier: Tier(plain.Text(m.Tier)), For: plain.Text(m.For), Session: instance.SessionText(lockfsm.SessionID(m.Session)), Leaving: m.Leaving,
		}
		if m.Since != 0 {
			one.Since = time.UnixMilli(m.Since)
		}
		list = append(list, one)
	}
	return list
}

// Tier is what a secret or certificate makes of the process that has it.
type Tier string

// The tiers.
const (
	TierRoot   Tier = "root"   // the root secret: it may found, vote and serve
	TierMember Tier = "member" // a derived secret with the word member: it locks, and never votes or serves
	TierGuest  Tier = "guest"  // any other derived secret: a program that only takes locks, and no instance
)
