package voters

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file has all sentences of the package: the reasons of steps, and of those that are not
// taken. The decisions name a reason by its type. Status and logs show its sentence, see Step.Why.

// maxNamed is how many names a sentence has.
const maxNamed = 10

// reason is why a step is taken, or why none is.
type reason = fmt.Stringer

// bare is a reason without details.
type bare uint8

const (
	leadsWithoutVote bare = iota
	changeInFlight
	startsReplica   // an instance was asked to start its replica
	leaderHasNoHeir // no voter has all of the leader's log yet
)

func (p bare) String() string {
	return [...]string{
		leadsWithoutVote: "this replica has no vote and does not lead",
		changeInFlight:   "a change of voters is in flight",
		startsReplica:    "waiting for an instance to start its replica",
		leaderHasNoHeir:  "the leader leaves and waits for a voter that has all of its log",
	}[p]
}

// noMajority means that too few voters are in contact.
type noMajority struct{ active, voters int }

func (r noMajority) String() string {
	return fmt.Sprintf("only %d of %d voters are in contact: no change can be committed", r.active, r.voters)
}

// noneCouldVote means that all instances that could vote leave. The founders are the only ones that
// may vote, if there are any.
type noneCouldVote struct{ founders []string }

func (r noneCouldVote) String() string {
	names := slices.Sorted(slices.Values(r.founders))
	if len(names) == 0 {
		return "no instance that stays could vote"
	}
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "no instance that stays is one of the Founders (" + text + "), so none can vote"
}

// handsOver means that the leader leaves, and that another voter has all of its log.
type handsOver struct{ to *member }

func (r handsOver) String() string {
	return "the leader leaves: it hands the lead to " + r.to.label() + " first"
}

// tooFewReplicas means that an instance is asked to start a replica.
type tooFewReplicas struct {
	asked        string
	have, wanted int
}

func (r tooFewReplicas) String() string {
	return fmt.Sprintf("%q is asked to start a replica since there are only %d of %d replicas", r.asked, r.have, r.wanted)
}

// fullZone means that an instance is asked to start a replica, which can replace a voter of a zone
// with too many.
type fullZone struct {
	asked   string
	instead *member
}

func (r fullZone) String() string {
	return fmt.Sprintf("%q is asked to start a replica to spread the voters over zones, instead of %s", r.asked,
		r.instead.label())
}

// replicaRuns means that a replica can be added as a learner.
type replicaRuns struct{ name string }

func (r replicaRuns) String() string {
	return fmt.Sprintf("%q runs an empty replica and is added as a learner", r.name)
}

// changes are the reasons of a change of the configuration, in the order of the members.
type changes []changed

// changed is what a change makes of a member.
type changed struct {
	m  *member
	as fate
}

type fate uint8

const (
	promoted fate = iota
	demoted
	removed
)

func (r changes) String() string {
	var parts []string
	for _, c := range r {
		switch c.as {
		case promoted:
			parts = append(parts, c.m.label()+" gets a vote")
		case demoted:
			parts = append(parts, c.m.label()+" becomes a learner")
		default:
			parts = append(parts, c.m.label()+" is removed ("+c.m.unfit()+")")
		}
	}
	return strings.Join(parts, ", ")
}

// unfit returns why the member may not remain.
func (m *member) unfit() string {
	switch {
	case m.info.Leaving:
		return "it leaves"
	case m.dead && m.Renewed:
		return "another instance uses its name and its address, without its directory"
	case m.dead && m.LifeOver:
		return "its process is gone"
	case m.dead:
		return "it is silent"
	case m.foreign:
		return "it is no founder"
	case m.double:
		return "its process has another replica"
	}
	return "it is not needed"
}

// label returns how a sentence calls the member.
func (m *member) label() string {
	if m.info.Name == "" {
		if m.Addr != "" {
			return "the instance at " + m.Addr
		}
		return "replica " + nodeid.Hex(m.ID)
	}
	return strconv.Quote(m.info.Name)
}

func labels(list []*member) string {
	var all []string
	for _, m := range list {
		all = append(all, m.label())
	}
	return strings.Join(all, ", ")
}

// awaits is a wanted change that is not possible yet. Its first list with a member counts. last is
// the last entry of the leader's log.
type awaits struct {
	going, silent, behind []*member
	last                  uint64
}

func (r awaits) String() string {
	var behind []string
	for _, m := range r.behind {
		behind = append(behind, m.label()+" "+m.lacks(r.last))
	}
	until := "waiting until " + strings.Join(behind, ", and ")
	switch {
	case len(r.going) > 0 && len(behind) > 0:
		return labels(r.going) + " cannot be replaced yet: " + until
	case len(r.going) > 0:
		return labels(r.going) + " cannot be replaced yet: waiting for a replacement"
	case len(r.silent) > 0:
		return "no contact with " + labels(r.silent)
	}
	return until
}

// lacks returns what must still happen before an active learner can get a vote. last is the last
// entry of the leader's log.
func (m *member) lacks(last uint64) string {
	switch {
	case m.Snapshot > 0:
		return fmt.Sprintf("has caught up (it receives a snapshot of %d bytes)", m.Snapshot)
	case !m.CaughtUp:
		return fmt.Sprintf("has caught up (it has %d of %d entries)", m.Match, max(m.Match, last))
	case !m.info.Session:
		return "has a session"
	}
	return "has received the present configuration"
}

// awaitsReplicas means that the group has fewer replicas or voters than it should have.
type awaitsReplicas struct{ wanted, target int }

func (r awaitsReplicas) String() string {
	return fmt.Sprintf("waiting for %d replicas, %d of them voters", r.wanted, r.target)
}

// rests means that the named instances did not start a replica.
type rests struct{ names []string }

func (r rests) String() string {
	var quoted []string
	for _, name := range r.names {
		quoted = append(quoted, strconv.Quote(name))
	}
	return strings.Join(quoted, ", ") + " did not start a replica and will be asked again"
}

// asWanted means that the voters are as they should be.
type asWanted struct {
	voters, eligible int
	most             int // Settings.Voters, if it is the reason why no more instances vote; or 0
	barred           reason
	surplus          int // instances without a vote because of Replicas
	replicas         int
	notes            []reason
}

func (r asWanted) String() string {
	text := fmt.Sprintf("%d of %d eligible instances vote", r.voters, r.eligible)
	if r.most > 0 {
		text += fmt.Sprintf(", the largest odd number up to Voters, %d", r.most)
	}
	if r.barred != nil {
		text += "; " + r.barred.String()
	}
	if r.surplus > 0 {
		text += fmt.Sprintf("; %d more get no vote because Replicas is %d", r.surplus, r.replicas)
	}
	for _, note := range r.notes {
		text += "; " + note.String()
	}
	return text
}

// lostOften means that an instance is left out for now.
type lostOften struct {
	name string
	lost int
}

func (r lostOften) String() string {
	return fmt.Sprintf("%q was lost %d times in two minutes and gets no replica until it is steady", r.name, r.lost)
}

// oldBuild means that an instance does not know the lock rules of the group.
type oldBuild struct {
	of    Registered
	rules uint32
}

func (r oldBuild) String() string {
	return fmt.Sprintf("%q at %s gets no vote: the group has lock rules %d, its build knows up to %d; upgrade it",
		r.of.Name, r.of.Addr, r.rules, r.of.Rules)
}

// sameName means that an instance has the name of a voter.
type sameName struct {
	of    Registered
	voter *member
}

func (r sameName) String() string {
	return fmt.Sprintf("%q at %s gets no vote because %s at %s has the same name: give each instance a Name of its own",
		r.of.Name, r.of.Addr, r.voter.label(), r.voter.Addr)
}

// checksVoter means that the stream with a voter has ended, and that it is not dead yet.
type checksVoter struct{ voter *member }

func (r checksVoter) String() string {
	return "the stream with " + r.voter.label() + " has ended, and the leader is checking whether it still runs"
}
