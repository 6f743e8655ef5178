package replica

import (
	"slices"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
)

// This file converts between the types of the log and those of package voters.

// Placed decodes the instances and addresses of a configuration's replicas. A Voter that cannot be
// decoded has only the raft ID.
func Placed(c *raftlog.Configuration) []founding.Voter {
	list := make([]founding.Voter, 0, len(c.Members))
	for _, m := range c.Members {
		v, err := founding.DecodePlace(m.Context)
		if err != nil {
			v = founding.Voter{}
		}
		v.Raft = m.ID
		v.Learner = !slices.Contains(c.Voters, m.ID) && !slices.Contains(c.Outgoing, m.ID)
		list = append(list, v)
	}
	return list
}

// Applied converts an applied configuration to that of package founding.
func Applied(c *raftlog.Configuration) founding.Configuration {
	applied := founding.Configuration{At: c.Index, Voters: Placed(c)}
	if len(c.Outgoing) > 0 {
		applied.Incoming, applied.Outgoing = c.Voters, c.Outgoing
	}
	return applied
}

// LogOf converts the position of a replica's log to a type of package founding.
func LogOf(role raftlog.Role) founding.Log {
	if role.Leader != 0 || role.LastIndex == 0 {
		return founding.Log{}
	}
	return founding.Log{Term: role.Term, LastTerm: role.LastTerm, LastIndex: role.LastIndex}
}

// Names reports whether a configuration assigns the raft ID to the instance.
func Names(c *raftlog.Configuration, raft uint64, instance nodeid.ID) bool {
	for _, m := range c.Members {
		if m.ID == raft {
			v, err := founding.DecodePlace(m.Context)
			return err == nil && v.Instance == instance
		}
	}
	return false
}

// Find returns the replica with the raft ID in a configuration, or the zero Voter.
func Find(c *raftlog.Configuration, raft uint64) founding.Voter {
	for _, v := range Placed(c) {
		if v.Raft == raft {
			return v
		}
	}
	return founding.Voter{}
}

// facts returns the facts about the replicas from a leader's log. find and linked have the same
// meaning as in [SettingsAgreement.Facts].
func facts(s *raftlog.Survey, settings voters.Settings, find func(raft uint64) (founding.Voter, bool),
	linked func(nodeid.ID) bool) voters.Facts {
	f := voters.Facts{
		Self: s.Self, Pending: s.Pending, Last: s.Last, Settings: settings,
		Config: voters.Config{At: s.Config.Index, Voters: s.Config.Voters, Outgoing: s.Config.Outgoing,
			Learners: s.Config.Learners},
	}
	where := map[uint64]founding.Voter{}
	for _, v := range Placed(&s.Config) {
		where[v.Raft] = v
		if newer, ok := find(v.Raft); ok && newer.Instance == v.Instance {
			where[v.Raft] = newer
		}
	}
	for _, p := range s.Replicas {
		v := where[p.ID]
		f.Replicas = append(f.Replicas, voters.Replica{
			ID: p.ID, Instance: v.Instance, Addr: v.Addr, Linked: linked(v.Instance), Active: p.Active,
			SilentFor: p.SilentFor, Heard: p.Heard,
			Match: p.Match, Snapshot: p.Snapshot,
			CaughtUp: p.CaughtUp, Full: p.Full, Settled: p.Settled,
		})
	}
	return f
}

// Change returns the configuration change for a step, or false if the step needs none. about is the
// replica to add.
func Change(step voters.Step, about founding.Voter) (raftlog.Change, bool) {
	switch step.Kind {
	case voters.AddLearner:
		return raftlog.Change{Add: &raftlog.Member{ID: step.ID, Context: founding.AppendPlace(nil, about)}}, true
	case voters.Change:
		return raftlog.Change{Promote: step.Promote, Demote: step.Demote, Remove: step.Remove}, true
	}
	return raftlog.Change{}, false
}

// Founded returns the initial state of the group that a charter founds.
func Founded(c *founding.Charter, limits lockfsm.Limits) (*lockfsm.Machine, error) {
	return lockfsm.New(lockfsm.Charter{
		Group: c.Group, FoundedUnixMS: c.FoundedUnixMS, Rules: c.Rules, SessionTTL: c.Settings.SessionTTL,
		Grace:  c.Settings.Grace,
		Limits: limits, Settings: FoundedWith(c.Settings).Encode(),
	})
}

// Found initializes an empty store for a founder of the group.
func Found(store raftlog.Store, c *founding.Charter, id uint64, machine *lockfsm.Machine) error {
	return raftlog.Found(store, c.Group, id, members(c.Voters), machine.Snapshot(nil))
}

func members(founders []founding.Voter) []raftlog.Member {
	var list []raftlog.Member
	for _, v := range founders {
		list = append(list, raftlog.Member{ID: v.Raft, Context: founding.AppendPlace(nil, v)})
	}
	return list
}
