//go:build with_tla

package sim

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3"

	"github.com/mortise-lock/mortise/raftlog"
)

// raftTrace checks raft's own trace points, event by event, for one group.
type raftTrace struct {
	leaders map[uint64]string       // by term
	nodes   map[string]*tracedNode  // by raft ID
	terms   map[uint64]uint64       // by index, of committed entries
	commit  uint64                  // the highest one that any node has reported
	events  map[string]int          // by name
	write   func(raft.TracingEvent) // nil means none
	err     error
}

type tracedNode struct {
	term, commit uint64
	votes        map[uint64]string // whom this run of the node has voted for
}

func newRaftTrace() *raftTrace {
	return &raftTrace{leaders: map[uint64]string{}, nodes: map[string]*tracedNode{}, terms: map[uint64]uint64{},
		events: map[string]int{}}
}

// TraceEvent implements raft.TraceLogger.
func (r *raftTrace) TraceEvent(e *raft.TracingEvent) {
	r.events[e.Name]++
	if r.write != nil {
		r.write(*e)
	}
	if r.err == nil {
		r.err = r.check(e)
	}
}

func (r *raftTrace) check(e *raft.TracingEvent) error {
	n := r.nodes[e.NodeID]
	if n == nil || e.Name == "InitState" { // a commit index and a vote need not be durable
		n = &tracedNode{votes: map[uint64]string{}}
		r.nodes[e.NodeID] = n
	}
	if e.State.Term < n.term || e.State.Commit < n.commit || e.State.Commit > e.LogSize {
		return fmt.Errorf("%s at %s: term %d after %d, commit %d after %d, last index %d", e.Name, e.NodeID, e.State.Term,
			n.term, e.State.Commit, n.commit, e.LogSize)
	}
	n.term, n.commit = e.State.Term, e.State.Commit
	if e.Name == "BecomeLeader" {
		if other := r.leaders[e.State.Term]; other != "" && other != e.NodeID {
			return fmt.Errorf("%s and %s lead in term %d", other, e.NodeID, e.State.Term)
		}
		r.leaders[e.State.Term] = e.NodeID
		if e.LogSize < r.commit {
			return fmt.Errorf("%s leads in term %d with %d entries, and %d are committed", e.NodeID, e.State.Term,
				e.LogSize, r.commit)
		}
	}
	r.commit = max(r.commit, e.State.Commit)
	if e.Message == nil {
		return nil
	}
	return r.message(e, n)
}

func (r *raftTrace) message(e *raft.TracingEvent, n *tracedNode) error {
	m := e.Message
	switch {
	case e.Name == "SendRequestVoteResponse" && !m.Reject:
		if other := n.votes[m.Term]; other != "" && other != m.To {
			return fmt.Errorf("%s votes for %s and for %s in term %d", e.NodeID, other, m.To, m.Term)
		}
		n.votes[m.Term] = m.To
	case e.Name == "SendAppendEntriesRequest" && m.Type == "MsgApp":
		if r.leaders[m.Term] != e.NodeID {
			return fmt.Errorf("%s appends in term %d, in which %q leads", e.NodeID, m.Term, r.leaders[m.Term])
		}
		if known := r.terms[m.Index]; m.Index != 0 && m.Index <= m.Commit {
			if known != 0 && known != m.LogTerm {
				return fmt.Errorf("the committed entry %d has term %d at %s, and %d elsewhere", m.Index, m.LogTerm, e.NodeID,
					known)
			}
			r.terms[m.Index] = m.LogTerm
		}
	}
	return nil
}

// TestRaftTrace records raft's own trace points in MORTISE_SEEDS runs, from MORTISE_SEED on, and
// checks: one leader a term, which has all that is committed; one vote a term; terms and commit
// indices that only rise, and end within the log; one term for each committed entry. With
// MORTISE_TRACE the events of each group are also appended to that file, in the form that the
// validator of etcd's raft reads.
func TestRaftTrace(t *testing.T) {
	c := Campaign{}
	if err := c.FromEnvironment(1); err != nil {
		t.Fatal(err)
	}
	for seed := c.First; seed < c.First+c.Least; seed++ {
		cryptotest.SetGlobalRandom(t, seed)
		traces := map[uint64]*raftTrace{}
		cfg := Draw(seed)
		cfg.RaftTrace = func(group uint64) raftlog.RaftTracer {
			if traces[group] == nil {
				traces[group] = newRaftTrace()
				traces[group].write = writeTrace(t, group)
			}
			return traces[group]
		}
		var r *Report
		// Raft sleeps for a millisecond at each received message. In a bubble this takes no time.
		synctest.Test(t, func(*testing.T) { r = Run(cfg) })
		if r.Fault != "" {
			t.Fatalf("%v\n%s", &r.Config, r.Fault)
		}
		events := map[string]int{}
		for group, trace := range traces {
			if trace.err != nil {
				t.Fatalf("%v\ngroup %x: %v", &r.Config, group, trace.err)
			}
			for name, n := range trace.events {
				events[name] += n
			}
		}
		for _, name := range []string{"InitState", "BecomeCandidate", "BecomeLeader", "Commit", "SendAppendEntriesRequest",
			"SendRequestVoteResponse"} {
			if events[name] == 0 {
				t.Errorf("seed %d has no event %s: %v", seed, name, events)
			}
		}
		t.Logf("seed %d: %v", seed, events)
	}
}

func writeTrace(t *testing.T, group uint64) func(raft.TracingEvent) {
	name := os.Getenv("MORTISE_TRACE")
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name+"."+strconv.FormatUint(group, 16)+".ndjson", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(f)
	t.Cleanup(func() {
		if err := out.Flush(); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(e raft.TracingEvent) {
		line, err := json.Marshal(map[string]any{"tag": "trace", "event": e, "ts": time.Now().UnixNano()})
		if err == nil {
			_, err = out.Write(append(line, '\n'))
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// Each invariant is broken by one event.
func TestRaftTraceNotices(t *testing.T) {
	leads := func(node string, term, log uint64) raft.TracingEvent {
		return raft.TracingEvent{Name: "BecomeLeader", NodeID: node, State: raft.TracingState{Term: term}, LogSize: log}
	}
	state := func(node string, term, commit, log uint64) raft.TracingEvent {
		return raft.TracingEvent{Name: "Commit", NodeID: node, State: raft.TracingState{Term: term, Commit: commit},
			LogSize: log}
	}
	send := func(node, name, kind, to string, term, index, logTerm uint64) raft.TracingEvent {
		return raft.TracingEvent{Name: name, NodeID: node, State: raft.TracingState{Term: term}, LogSize: 9,
			Message: &raft.TracingMessage{Type: kind, To: to, Term: term, Index: index, LogTerm: logTerm, Commit: index}}
	}
	const vote, app = "SendRequestVoteResponse", "SendAppendEntriesRequest"
	for name, events := range map[string][]raft.TracingEvent{
		"two leaders":      {leads("1", 2, 1), leads("2", 2, 1)},
		"a leader lacks":   {state("1", 2, 5, 5), leads("2", 3, 4)},
		"two votes":        {send("1", vote, "MsgVoteResp", "2", 2, 0, 0), send("1", vote, "MsgVoteResp", "3", 2, 0, 0)},
		"commit falls":     {state("1", 2, 5, 5), state("1", 2, 4, 5)},
		"term falls":       {state("1", 3, 5, 5), state("1", 2, 5, 5)},
		"commit of no log": {state("1", 2, 6, 5)},
		"not the leader":   {leads("1", 2, 1), send("2", app, "MsgApp", "3", 2, 1, 1)},
		"two terms": {leads("1", 2, 9), send("1", app, "MsgApp", "3", 2, 4, 1), leads("2", 3, 9),
			send("2", app, "MsgApp", "3", 3, 4, 2)},
	} {
		r := newRaftTrace()
		for i, e := range events {
			if r.err != nil {
				t.Errorf("%s: event %d: %v", name, i, r.err)
			}
			r.TraceEvent(&e)
		}
		if r.err == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}
