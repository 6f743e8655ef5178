package raftlog

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/clock"
)

const (
	testGroup = 77
	testTick  = 10 * time.Millisecond
)

var quiet = textLogger(io.Discard)

func textLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

type replica struct {
	c       *cluster
	id      uint64
	core    *Core
	store   *MemoryStore // the durable data
	save    *Batch       // the Save that was handed out and is not durable; a crash loses it
	now     clock.Time
	machine machine
	drift   uint64 // difference of its digest, as if its state differed
	role    Role
	config  Configuration
	leading uint64            // term of the last LeadBegins; zero means none in this term
	asked   map[uint64]uint64 // for each round, the highest index committed when it was requested
	done    []uint64          // confirmed rounds, in order
	number  uint64            // number of batches accepted in role.Term
	taken   int               // number of snapshots taken
	capture *capture          // the snapshot that is being taken
	stale   *capture          // a snapshot that a Restore has abandoned; passed to the Core nevertheless
	writing *raftpb.Snapshot  // the snapshot that is being prepared
	written *raftpb.Snapshot  // prepared
	failed  error
}

func (r *replica) start() {
	st, err := r.store.Load()
	if err != nil {
		r.c.t.Fatal(err)
	}
	cfg := r.c.config
	cfg.State, cfg.Now = st, r.now
	cfg.Digest = func() uint64 { return r.machine.state + r.drift }
	core, err := NewCore(cfg)
	if err != nil {
		r.c.t.Fatalf("replica %d: %v", r.id, err)
	}
	r.core, r.save, r.machine, r.role, r.leading, r.failed = core, nil, machine{}, Role{}, 0, nil
	r.capture, r.stale, r.writing, r.written = nil, nil, nil, nil
	reported := r.config.Index
	r.config = Configuration{}
	r.asked = map[uint64]uint64{}
	r.turn()
	if r.config.Index < reported {
		r.c.check.fault("replica %d reported the configuration at %d and restarts with that at %d", r.id, reported,
			r.config.Index)
	}
}

// crash ends the Core. Data that is not durable is lost. If written is set, the present Save
// becomes durable first.
func (r *replica) crash(written bool) {
	if written && r.save != nil {
		r.stored()
	}
	r.core, r.save = nil, nil
	r.c.trace("crash %d %v", r.id, written)
}

func (r *replica) stored() {
	if r.save.Prepared && r.save.Snapshot != r.written {
		r.c.check.fault("replica %d: the snapshot at %d is named before it is written", r.id,
			r.save.Snapshot.GetMetadata().GetIndex())
	}
	if err := r.store.Save(*r.save); err != nil {
		r.c.check.fault("replica %d: %v", r.id, err)
	}
	r.save = nil
}

// turn carries out the Outputs of the core until an Output is idle. A Save becomes durable only
// when sync is called.
func (r *replica) turn() {
	for range 1000 {
		out := r.core.Turn()
		if out.Idle() {
			return
		}
		if out.Failed != nil {
			if errors.Is(out.Failed, ErrDiverged) && r.drift == 0 {
				r.c.check.fault("replica %d retires, and its state is right: %v", r.id, out.Failed)
			}
			r.failed = out.Failed
			r.crash(false)
			return
		}
		for _, e := range out.Events {
			r.event(e)
			r.core.noteDigest(&e)
		}
		r.core.nameDigests(out.Messages)
		if out.Take != nil {
			r.taken++
			r.begin(*out.Take)
		}
		if out.Prepare != nil {
			if r.writing != nil {
				r.c.check.fault("replica %d was handed a second snapshot to prepare", r.id)
			}
			if r.writing = out.Prepare; !r.c.slowly {
				r.prepared()
			}
		}
		for _, m := range out.Messages {
			r.leaves(m)
			r.c.send(m)
		}
		r.c.twice = append(r.c.twice, out.Duplicates...)
		for _, m := range out.Snapshots {
			r.c.sendSnapshot(m)
		}
		if out.Save != nil {
			if r.save != nil {
				r.c.check.fault("replica %d was handed a second save", r.id)
			}
			r.save = out.Save
		}
	}
	r.c.check.fault("replica %d never becomes idle", r.id)
}

type capture struct {
	order Take
	state []byte
}

func (r *replica) begin(order Take) {
	if r.capture != nil {
		r.c.check.fault("replica %d was asked for a second snapshot", r.id)
	}
	r.capture = &capture{order, r.machine.snapshot()}
	if !r.c.slowly {
		r.captured()
	}
}

func (r *replica) captured() {
	c := r.capture
	if r.capture = nil; r.stale != nil {
		c, r.stale, r.capture = r.stale, nil, c
	}
	r.core.Snapshotted(c.order.Index, append(c.order.Header, c.state...))
}

func (r *replica) prepared() {
	r.written, r.writing = r.writing, nil
	r.core.Prepared()
}

// finish completes the present stage of the snapshot. It reports whether a snapshot was being
// taken.
func (r *replica) finish() bool {
	switch {
	case r.core == nil || r.capture == nil && r.stale == nil && r.writing == nil:
		return false
	case r.writing != nil:
		r.prepared()
	default:
		r.captured()
	}
	r.turn()
	return true
}

func (r *replica) sync() {
	r.stored()
	r.core.Stored()
	r.c.turn(r)
}

// A call of r.leaves checks a message that the replica sends. It reports a fault if a vote or an
// acknowledgement is sent before its Save is durable.
func (r *replica) leaves(m *raftpb.Message) {
	st := r.store.state
	last := st.Snapshot.GetMetadata().GetIndex()
	if n := len(st.Entries); n > 0 {
		last = st.Entries[n-1].GetIndex()
	}
	switch m.GetType() {
	case raftpb.MsgVoteResp:
		term, vote := st.HardState.GetTerm(), st.HardState.GetVote()
		if !m.GetReject() && (term < m.GetTerm() || term == m.GetTerm() && vote != m.GetTo()) {
			r.c.check.fault("replica %d: vote for %d in term %d left before it was durable", r.id, m.GetTo(),
				m.GetTerm())
		}
	case raftpb.MsgAppResp:
		// A later leader may have replaced the acknowledged entries.
		if !m.GetReject() && (last < m.GetIndex() && st.HardState.GetTerm() == m.GetTerm() ||
			st.HardState.GetTerm() < m.GetTerm()) {
			r.c.check.fault("replica %d: acknowledgement of %d left when %d was durable", r.id, m.GetIndex(), last)
		}
	}
}

func (r *replica) event(e Event) {
	k := r.c.check
	r.c.trace("event %d %d %d %d %d %x %v", r.id, e.Kind, e.Index, e.Term, e.Round, e.Data, e.Role)
	switch e.Kind {
	case RoleChanged:
		k.role(r.id, e.Role)
		if e.Role.Term != r.role.Term || e.Role.Leading != r.role.Leading {
			r.leading, r.number, r.asked = 0, 0, map[uint64]uint64{}
		}
		r.role = e.Role
	case Applied:
		r.applied(e)
	case LeadBegins:
		if !r.role.Leading || r.role.Term != e.Term || r.leading != 0 {
			k.fault("replica %d: lead of term %d begins in %v", r.id, e.Term, r.role)
		}
		for index, entry := range k.entries {
			if entry.term < e.Term && index > r.machine.index {
				k.fault("replica %d leads term %d without having applied entry %d of term %d", r.id, e.Term, index,
					entry.term)
			}
		}
		r.leading = e.Term
	case RoundDone:
		committed, ok := r.asked[e.Round]
		if !ok || e.Term != r.role.Term || r.leading != e.Term {
			k.fault("replica %d: round %d of term %d was confirmed and not asked for in %v", r.id, e.Round, e.Term,
				r.role)
		}
		if r.machine.index < committed {
			k.fault("replica %d: round %d was confirmed at %d when %d had been committed before", r.id, e.Round,
				r.machine.index, committed)
		}
		delete(r.asked, e.Round)
		r.done = append(r.done, e.Round)
	case Configured:
		k.configured(r.id, r.config, *e.Config)
		r.config = *e.Config
	case Restored:
		r.machine.restore(e.Data)
		if r.capture != nil {
			r.capture, r.stale = nil, r.capture
		}
		for index := range k.entries {
			if index > r.machine.index && index <= e.Index {
				k.fault("replica %d was restored at %d to a state without entry %d", r.id, e.Index, index)
			}
		}
		if seen, ok := k.entries[r.machine.index]; ok && seen.state != r.machine.state {
			k.fault("replica %d was restored to another state at %d", r.id, r.machine.index)
		}
	}
}

func (r *replica) applied(e Event) {
	last := r.store.state.Snapshot.GetMetadata().GetIndex()
	if n := len(r.store.state.Entries); n > 0 {
		last = r.store.state.Entries[n-1].GetIndex()
	}
	if e.Index > last {
		r.c.check.fault("replica %d applied %d when %d was durable", r.id, e.Index, last)
	}
	if e.Index <= r.machine.index {
		r.c.check.fault("replica %d applied %d after %d", r.id, e.Index, r.machine.index)
	}
	r.machine.apply(e.Index, e.Data)
	r.c.check.applied(r.id, e.Index, e.Term, e.Data, r.machine.state)
}

func (r *replica) propose() bool {
	if !r.role.Leading || !r.core.Propose(r.role.Term, batch{r.role.Term, r.number}.encode()) {
		return false
	}
	r.number++
	return true
}

func (r *replica) confirm(round uint64) {
	if r.role.Leading { // an Applier knows that only from Role
		r.asked[round] = r.c.check.last
		r.core.Confirm(r.role.Term, round)
	}
}

func newTestStore(t *testing.T, id uint64, voters []uint64) *MemoryStore {
	t.Helper()
	s := NewMemoryStore()
	if err := Found(s, testGroup, id, testMembers(voters...), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func testMembers(ids ...uint64) (members []Member) {
	for _, id := range ids {
		members = append(members, Member{id, fmt.Appendf(nil, "replica %d", id)})
	}
	return members
}
