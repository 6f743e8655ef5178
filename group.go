package mortise

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// Health is the state of the voters, as reported by the group's leader.
type Health struct {
	Leader   string // Name of the instance that leads
	Eligible int    // instances that could vote
	Target   int    // instances that should vote
	// Members is the number of the group's members and guests, as Node.Members lists them. It is zero
	// if the leader has not counted them for this answer.
	Members int

	Missing []MissingVoter // voters from which the leader receives nothing
	// CannotLose names each instance whose loss now would leave the group without a majority.
	CannotLose []string
	Due        bool        // a change of the voters is due or in progress: stop no instance now
	Change     string      // describes the change, or says why there is none
	Disks      []DiskFault // instances that have reported a disk fault to the leader
	// Differs are settings that are not equal on all instances, founders that are missing while
	// instances run that are no founders, instances whose build the leader refuses, and instances
	// whose replica had another state than the majority: one sentence each, which begins with the
	// setting, "Name", "Build", "State" or, about a Surplus, "Surplus".
	Differs []string
	// Surplus is how many instances run beyond Config.Replicas, programs with a derived secret not
	// counted. If it is not zero, a condition of the guarantees is broken: in a cut of the network a
	// second group can be founded, and both groups grant the same locks. A surplus instance can lock,
	// but gets no vote. Only a surplus that this leader has seen for 20 s counts.
	Surplus int
	Advice  string // the next safe step
}

// MissingVoter is a voter from which the leader receives nothing.
type MissingVoter struct {
	Member // Seen means that this leader has received a message from the voter
	// Silent is the time since that message. If there was none, it is the time since the leader began
	// to lead or the voter was added, and the voter may have ended earlier.
	Silent time.Duration
}

// Silence returns the time of the silence in words, for example "silent for 7s".
func (m MissingVoter) Silence() string {
	span := m.Silent.Round(time.Second / 10)
	if m.Silent >= 10*time.Second {
		span = m.Silent.Round(time.Second)
	}
	if !m.Seen {
		return fmt.Sprintf("silent for at least %v, as this leader has never heard from it", span)
	}
	return fmt.Sprintf("silent for %v", span)
}

// Health queries the leader for the state of the voters. ctx bounds the wait. If ctx ends because
// there is no leader, the error wraps the context's error and names what is missing.
func (n *Node) Health(ctx context.Context) (Health, error) {
	if err := n.Err(); err != nil {
		return Health{}, err
	}
	if ctx == nil {
		return Health{}, noContext("Health")
	}
	status, err := n.engine.QueryStatus(ctx)
	if err != nil {
		return Health{}, n.explain("ask for the state of the voters", err)
	}
	p := n.engine.Picture()
	if page, err := n.membersPage(ctx, &query.PageRequest{}); err == nil { // the leader may have refused this question
		p.Members = int(page.Total)
	}
	return n.health(p, status.Report, status.Leader, status.Remarks, n.engine.AskDisks(ctx, status.Leader)), nil
}

func (n *Node) health(p *instance.Picture, r voters.Report, leader nodeid.ID, remarks []string,
	disks []instance.FaultyDisk) Health {
	c, names := &p.Cluster, p.Names
	h := Health{
		Leader: names.Name(leader), Eligible: r.Eligible, Target: r.Target, Members: p.Members, Due: r.Due,
		Change: plain.Text(r.Next.Why), Disks: diskFaults(disks),
	}
	if s := r.Surplus; s != nil {
		h.Surplus = s.Running - s.Replicas
		h.Differs = append(h.Differs, plain.Sprintf("Surplus: %v; %s", s, s.Next()))
	}
	for _, remark := range remarks {
		h.Differs = append(h.Differs, plain.Text(remark))
	}
	for _, m := range r.Missing {
		name := plain.Text(m.Name)
		if name == "" {
			name = names.Name(m.Instance)
		}
		is := MissingVoter{Silent: m.SilentFor, Member: Member{Name: name, Instance: m.Instance.String(),
			Zone: names.Of(m.Instance).Zone, Votes: true, Seen: m.Heard}}
		if at := slices.IndexFunc(c.Voters, func(v cluster.Voter) bool { return v.Instance == m.Instance }); at >= 0 {
			is.Address = plain.Text(c.Voters[at].Addr)
		}
		h.Missing = append(h.Missing, is)
	}
	for _, id := range r.CannotSurvive {
		name := "replica " + nodeid.Hex(id)
		if at := slices.IndexFunc(c.Voters, func(v cluster.Voter) bool { return v.Raft == id }); at >= 0 {
			name = cmp.Or(names.Of(c.Voters[at].Instance).Name, "the instance at "+plain.Text(c.Voters[at].Addr))
		}
		h.CannotLose = append(h.CannotLose, name)
	}
	h.Advice = h.advice(r.Quorum, len(n.config.Founders) == 1)
	return h
}

// advice returns the next safe step. sole reports whether Config.Founders of this instance has
// exactly one name.
func (h *Health) advice(quorum, sole bool) string {
	faulty := h.faulty()
	switch {
	case !quorum && len(h.Missing) > 0:
		return "bring back a majority of the voters: " + h.missing()
	case faulty != "":
		return "stop no other instance now: " + faulty
	case h.Due && len(h.Missing) > 0:
		return "stop no instance now: " + h.missing() + " is being replaced, or must come back"
	case h.Due:
		return "stop no instance now; wait until the change is done"
	case h.differs("Surplus") != "":
		return h.DifferStep(h.differs("Surplus"))
	case h.differs("Name", "Build", "State") != "":
		return h.DifferStep(h.differs("Name", "Build", "State"))
	case h.differs("Founders", "Replicas") != "" && h.Eligible <= 1:
		return "restart every instance that still has the group's present Founders or Replicas (differs shows them) " +
			"with the new ones, one at a time and with Leave; restart " + orNone(h.Leader) + ", which has the only " +
			"vote, last: its vote moves once all remaining instances have the same ones"
	case h.differs("Founders", "Replicas") != "":
		return "restart every instance whose Founders or Replicas differ from the others' (differs shows them), one " +
			"at a time and with Leave: the voters change once all instances have the same ones"
	case h.Eligible <= 1 && sole:
		return "let three instances vote: start two more with Founders that name all three, then restart " +
			orNone(h.Leader) +
			" with the same Founders (docs/OPERATION.md, Scaling); while one votes, its loss ends the group and all locks"
	case h.Eligible <= 1:
		return "start a second and a third instance: while there is one, its loss ends the group and all locks"
	case h.Eligible == 2:
		return "start a third instance: one of the two votes, and its loss ends the group; the other may be stopped, " +
			"and Leave is safe for both"
	case h.low() != "":
		return "make room before you stop any other instance: " + h.low()
	case len(h.CannotLose) > 0:
		return "stop only one instance at a time, with Leave, and do not stop " + strings.Join(h.CannotLose, ", ")
	}
	return "any one instance may be stopped; wait for Ready of its successor before the next"
}

// differs returns the first sentence of Differs about one of the settings, or "".
func (h *Health) differs(settings ...string) string {
	for _, d := range h.Differs {
		if setting, _, _ := strings.Cut(d, ": "); slices.Contains(settings, setting) {
			return d
		}
	}
	return ""
}

// DifferStep returns the next step for a sentence of Differs.
func (h Health) DifferStep(sentence string) string {
	setting, _, _ := strings.Cut(sentence, ": ")
	switch setting {
	case "Founders", "Replicas":
		return h.Advice // which names the order of the restarts
	case "Name", "Build", "State", "Surplus":
		return sentence[strings.LastIndex(sentence, "; ")+len("; "):]
	}
	return "unless a roll-out of a new value is under way, set " + setting + " to one value on all instances, and " +
		"restart those that change, one at a time and with Leave"
}

func (h *Health) missing() string {
	var names []string
	for _, m := range h.Missing {
		if f := h.diskOf(m.Instance); f != nil {
			names = append(names, plain.Sprintf("%s (it answers and takes locks; %s)", m.Name,
				instance.DiskWords(instance.DiskState(f.State))))
			continue
		}
		names = append(names, fmt.Sprintf("%s (%s)", m.Name, m.Silence()))
	}
	return strings.Join(names, ", ")
}

func (h *Health) diskOf(instance string) *DiskFault {
	for i := range h.Disks {
		if f := &h.Disks[i]; f.Instance == instance && f.State != DiskLow {
			return f
		}
	}
	return nil
}

func (h *Health) faulty() string {
	var list []string
	for _, f := range h.Disks {
		if f.State != DiskLow {
			list = append(list, plain.Sprintf("%s answers and takes locks; %v", f.Name, f))
		}
	}
	return strings.Join(list, "; ")
}

// low lists the disks that are almost full. When such a disk is full, its voter can no longer vote.
func (h *Health) low() string {
	var list []string
	for _, f := range h.Disks {
		if f.State == DiskLow {
			list = append(list, plain.Sprintf("%s: %s", f.Name, f.Cause))
		}
	}
	return strings.Join(list, "; ")
}

// String returns the health in a few lines, with untrusted text escaped.
func (h Health) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(plain.Sprintf(format, args...)) }
	line("leader %s, %d voters wanted of %d eligible instances", orNone(h.Leader), h.Target, h.Eligible)
	if len(h.Missing) > 0 {
		line("\nmissing: %s", h.missing())
	}
	if len(h.CannotLose) > 0 {
		line("\nthis group cannot survive the loss of %s", strings.Join(h.CannotLose, ", or of "))
	}
	if h.Change != "" {
		line("\nvoters: %s", h.Change)
	}
	for _, f := range h.Disks {
		line("\ndisk of %s: %v", f.Name, f)
	}
	for _, d := range h.Differs {
		line("\ndiffers: %s", d)
	}
	line("\nnext safe step: %s", h.Advice)
	return b.String()
}

func orNone(name string) string {
	if name == "" {
		return "none"
	}
	return name
}

// Members returns the members of the group, the oldest session first. It queries the leader for a
// hundred at a time, and waits for a leader until ctx ends. If after is "", the list begins with
// the first member. Otherwise after is the Session of a member, and the list begins with the next
// member. A member that is present during the whole iteration is listed once. An instance that has
// replaced a lost session is listed twice, with the new session and with the lost one, until the
// lost one has expired.
//
// After an error, which is returned with a zero Member, the iteration ends. The list is for display
// and monitoring only. While there is no leader, see Status.Voters.
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

func cursorBehind(session string) (*query.SessionCursor, error) {
	if session == "" {
		return nil, nil
	}
	id, err := strconv.ParseUint(session, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: Members: %q is not a session: after must be the Session of a Member", ErrBadRequest,
			session)
	}
	return &query.SessionCursor{At: id, Past: id}, nil
}

// membersPage queries the leader for a page, and keeps the names of the instances for Status.
func (n *Node) membersPage(ctx context.Context, q *query.PageRequest) (*query.MemberList, error) {
	page, err := look(ctx, n, query.QueryClient.Members, q)
	if err == nil {
		if n.config.unreachable() { // the address of this node is a placeholder that cannot be dialed
			for i := range page.Members {
				page.Members[i].Addr = ""
			}
		}
		n.engine.LearnNames(page)
	}
	return page, err
}

func membersOf(page *query.MemberList) []Member {
	list := make([]Member, 0, len(page.Members))
	for _, m := range page.Members {
		one := Member{
			Name: plain.Text(m.Name), Instance: queries.ID(m.Instance).String(), Address: plain.Text(m.Addr),
			Zone: plain.Text(m.Zone), Version: plain.Text(m.Version),
			Votes: m.Votes, Tier: Tier(plain.Text(m.Tier)), For: plain.Text(m.For),
			Session: instance.SessionText(lockfsm.SessionID(m.Session)), Leaving: m.Leaving,
		}
		if m.Since != 0 {
			one.Since = time.UnixMilli(m.Since)
		}
		list = append(list, one)
	}
	return list
}

// DiskState is the kind of a disk fault.
type DiskState string

// The states of a [DiskFault].
const (
	DiskFailed  DiskState = "failed"  // the disk has returned an error
	DiskHung    DiskState = "hung"    // a call of the file system does not return
	DiskRemoved DiskState = "removed" // the directory was removed or replaced under the running instance
	// DiskNoFiles means that the process may open no more files, so that a write failed.
	DiskNoFiles DiskState = "no-files"
	DiskLow     DiskState = "low" // a warning: less than Config.DirFreeBytes is left
)

// DiskFault is a fault of the disk of an instance with Config.Dir.
type DiskFault struct {
	Name     string // of the instance
	Instance string // its ID
	State    DiskState
	Since    time.Time // when the instance noticed it, by its wall clock
	Cause    string    // the error, with the path
	Remedy   string    // what to do
}

// String returns the fault in a sentence, with untrusted text escaped.
func (f DiskFault) String() string {
	return plain.Sprintf("%s, noticed %s (%s): %s", instance.DiskWords(instance.DiskState(f.State)),
		f.Since.UTC().Format(time.DateTime+" UTC"), f.Cause, f.Remedy)
}

func diskFaults(list []instance.FaultyDisk) (all []DiskFault) {
	for _, f := range list {
		all = append(all, DiskFault{Name: f.Name, Instance: f.Instance, State: DiskState(f.State), Since: f.Since,
			Cause: f.Cause, Remedy: f.Remedy})
	}
	return all
}
