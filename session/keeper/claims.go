package keeper

import (
	"fmt"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// claims notes what the applied Attach of a session claims. Only an attached session can claim: its
// connection proves the ID of its instance.
//
// It can claim that earlier starts of its own instance have ended: the state has the number of the
// start that has opened it. So a late or repeated Attach ends no session of its own start, of a
// later one, or of one with a copy of the directory. And it can claim that another instance has
// ended, if that has signed so. An instance without a directory has a new key in each incarnation,
// so this ends no session of a later one.
func (l *leases) claims(id lockfsm.SessionID, c claim) {
	if s := l.session(id); s != nil && (c.since != 0 && c.since < s.life || len(c.former) > 0) {
		l.opened.claims = append(l.opened.claims, made{c, nodeid.ID(s.opener.Instance), s.life})
	}
}

// endClaimed decides the end of the claimed sessions. Renewals of theirs that are under way are not
// waited for, and are not acknowledged.
func (l *leases) endClaimed(group uint64) {
	if l.entering.left > 0 {
		return
	}
	for i := range l.opened.claims {
		m := &l.opened.claims[i]
		if m.since != 0 {
			for s := l.opened.first[m.by]; s != nil; s = s.earlier {
				if m.ends(s) && !s.expiring {
					l.end(Ending{Session: s.id, Cause: lockfsm.Superseded, Reason: supersededBy(m.life)})
				}
			}
		}
		l.endFormer(m, group)
	}
	l.opened.claims = nil
}

// endFormer decides the end of the sessions of the instance that a claim names. It checks at most
// one signature, and none while the named instance has no session.
func (l *leases) endFormer(m *made, group uint64) {
	former := session.NamedFormer(m.former)
	if !l.opened.lives(former) || former == m.by || !session.ProvenFormer(m.former, group, m.by) {
		return
	}
	for s := l.opened.first[former]; s != nil; s = s.earlier {
		if !s.expiring {
			l.end(Ending{Session: s.id, Cause: lockfsm.Superseded, Reason: followedBy(m.by)})
		}
	}
}

// supersededBy is the reason in the audit log.
func supersededBy(life uint64) []byte {
	return fmt.Appendf(nil, "its node has ended, as start %d with its directory shows", nodeid.Count(life))
}

// followedBy is the same, if another instance has shown it.
func followedBy(by nodeid.ID) []byte {
	return fmt.Appendf(nil, "its node has ended, as instance %s shows, which has its run directory", by)
}
