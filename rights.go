package mortise

import (
	"context"
	"fmt"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file is what a derived secret may ask of an instance. A question is checked where its connection ends, which needs no leader, and
// again by the leader: the instance between them forwards the text of the rights, and asks nothing in its own name for others. What the
// commands of a session may do is checked by session's keeper.

// asker is the program for which a question is put. The zero asker is this node itself.
type asker struct {
	rights *capability.Capability // nil is a full instance
	id     nodeid.ID              // of the connection
}

// lookFor puts the question of another program to the leader.
func (n *Node) lookFor(ctx context.Context, from asker, q question) (sight, error) {
	q.Asker = from.id
	if from.rights != nil {
		if err := q.allowed(from.rights); err != nil {
			return sight{}, err
		}
		q.under(from.rights, from.id)
	}
	return n.look(ctx, q)
}

// readsAll reports why the asker may not see the state of the whole group.
func (a asker) readsAll() error {
	if a.rights.AllowsPrefix(capability.Read, "") {
		return nil
	}
	return a.lacks("read", "*")
}

// isRoot reports why the asker may not change the group.
func (a asker) isRoot() error {
	if a.rights == nil {
		return nil
	}
	return a.lacks("root", "")
}

func (a asker) lacks(verb, key string) error {
	return &NotAllowedError{Verb: verb, Key: key, For: a.rights.For()}
}

// under limits q to the rights of the program that has put it. Nil leaves it as it is.
func (q *question) under(rights *capability.Capability, by nodeid.ID) {
	if rights != nil {
		q.Rights, q.Asker = rights.Text(), by
	}
}

// rights returns the capability under which q is put.
func (q *question) rights() (*capability.Capability, error) {
	if q.Rights == "" {
		return nil, nil
	}
	c, err := capability.Parse(q.Rights)
	if err != nil {
		return nil, fmt.Errorf("mortise: a question was forwarded with rights that cannot be read: %w", err)
	}
	return c, nil
}

// allowed reports which right q needs and c does not grant.
func (q *question) allowed(c *capability.Capability) error {
	if c == nil {
		return nil
	}
	lacks := asker{rights: c}.lacks
	switch q.Op {
	case opPeek, opGet, opCheck, opHolders:
		if !c.Sees(q.Key) {
			return lacks("read", q.Key)
		}
	case opList, opWalk, opWatch:
		if !c.AllowsPrefix(capability.Read, q.Key) {
			return lacks("read", q.Key+"*")
		}
	case opPut:
		if !c.Allows(capability.Write, q.Key) {
			return lacks("write", q.Key)
		}
	case opEvict:
		if !c.Allows(capability.Force, q.Key) {
			return lacks("force", q.Key)
		}
		if !c.Allows(capability.Read, q.Key) {
			return lacks("read", q.Key)
		}
	case opEnds, opWho, opMembers, opNames:
		if !c.AllowsPrefix(capability.Read, "") {
			return lacks("read", "*")
		}
	default:
		return lacks("root", "")
	}
	return nil
}

// by names what ends a hold, for the log, the audit and the holder. The ID of a program is proved, and
// of one with a derived secret the name in its capability too; what it says of itself is a claim.
func (q *question) by() string {
	rights, err := q.rights()
	switch {
	case err != nil || q.Asker.IsZero():
		return q.By // an instance ends the hold by Node.ForceUnlock, under its own name
	case rights == nil:
		return fmt.Sprintf("%s (instance %v)", q.By, q.Asker)
	}
	return fmt.Sprintf("%s (instance %v, claims to be %q)", rights.For(), q.Asker, q.By)
}

// confine takes out of an answer the keys that rights do not show: of requests for several keys the others are counted.
func (s *sight) confine(rights *capability.Capability) {
	if rights == nil {
		return
	}
	for i := range s.Locks {
		for j := range s.Locks[i].Queue {
			keys := &s.Locks[i].Queue[j].Keys
			var shown []string
			for _, key := range *keys {
				if rights.Sees(key) {
					shown = append(shown, key)
				}
			}
			if hidden := len(*keys) - len(shown); hidden > 0 {
				shown = append(shown, fmt.Sprintf("%d outside these rights", hidden))
			}
			*keys = shown
		}
	}
}

// wayIn is the part of a picture that a program needs to find the leader.
func (s Status) wayIn() Status {
	for i := range s.Voters {
		s.Voters[i].Zone = ""
	}
	return Status{Name: s.Name, Instance: s.Instance, Phase: s.Phase, Group: s.Group, Leader: s.Leader, Session: s.Session, Voters: s.Voters, Waiting: s.Waiting}
}

// isMember reports whether this node has a member's secret: it locks, and neither votes nor serves.
func (n *Node) isMember() bool { return n.self.Tier == credentials.Member }

// reach is the address that this node says it is reached at; empty for a member.
func (n *Node) reach() string {
	if n.isMember() {
		return ""
	}
	return n.address
}
