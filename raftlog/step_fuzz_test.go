package raftlog

import (
	"errors"
	"fmt"
	"testing"
	"testing/cryptotest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/clock"
)

// stepper is one of three replicas, with a volatile store. The messages of the two other replicas
// come from the fuzzer. stepper calls the core as the shell does, and also recovers panics.
type stepper struct {
	t       *testing.T
	core    *Core
	store   *MemoryStore
	now     clock.Time
	retired error
	ticks   int // number of ticks so far, at most stepTicks
	sent    int
	taken   int // bytes of snapshots given to the state machine
}

// A replica that needs more than stepTime counts as hung.
const (
	stepTicks = 400
	stepBytes = 1 << 10
	stepTime  = 20 * time.Second
)

func newStepper(t *testing.T) *stepper {
	// Raft draws its election timeouts from crypto/rand, so a fixed seed is needed.
	cryptotest.SetGlobalRandom(t, 1)
	s := &stepper{t: t, store: newTestStore(t, 1, []uint64{1, 2, 3}), now: 1}
	st, err := s.store.Load()
	if err != nil {
		t.Fatal(err)
	}
	s.core, err = NewCore(CoreConfig{State: st, Now: s.now, Tick: testTick, ElectionTicks: 10, HeartbeatTicks: 1,
		EntriesInFlight: 2,
		QueueBytes:      1 << 10, SnapshotBytes: 1 << 9, KeepEntries: 8, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A call of s.do passes the core to the given function, and then carries out the Outputs of the
// core until an Output is idle. A panic retires the replica.
func (s *stepper) do(input func(c *Core)) {
	defer func() {
		if p := recover(); p != nil {
			s.retired = ErrPanic
		}
	}()
	input(s.core)
	for range 1000 {
		out := s.core.Turn()
		if out.Idle() {
			return
		}
		s.carry(&out)
		if s.retired != nil {
			return
		}
	}
	s.fatal("a replica that never becomes idle")
}

func (s *stepper) fatal(what string) {
	s.t.Errorf("%s: %+v", what, s.core.Status())
	s.retired = errors.New(what)
}

func (s *stepper) carry(out *Output) {
	if out.Failed != nil {
		s.retired = out.Failed
		return
	}
	for _, e := range out.Events {
		if e.Kind == Restored {
			s.taken += len(e.Data)
		}
	}
	if out.Take != nil {
		s.core.Snapshotted(out.Take.Index, append(out.Take.Header, "state"...))
	}
	if out.Prepare != nil {
		s.core.Prepared()
	}
	s.sent += len(out.Messages)
	for _, m := range out.Snapshots {
		s.sent++
		s.core.SnapshotSent(m.GetTo(), m.GetTerm(), false)
	}
	if out.Save != nil {
		if err := s.store.Save(*out.Save); err != nil {
			s.fatal("the core saved a log with a gap: " + err.Error())
			return
		}
		s.core.Stored()
	}
}

func stepChange(b byte) (ch Change) {
	id := uint64(1 + b>>4&3)
	switch b >> 2 & 3 {
	case 0:
		ch.Add = &Member{ID: id, Context: []byte{b}}
	case 1:
		ch.Promote = []uint64{id}
	case 2:
		ch.Demote = []uint64{id}
	default:
		ch.Remove, ch.Promote = []uint64{id}, []uint64{4}
	}
	return ch
}

// run runs a script. The lower two bits of a byte select the next step:
//
//   - 0 means ticks, with their number in the upper six bits
//   - 1 means a change of the configuration if the byte is 128 or more, and otherwise a batch and
//     a round
//   - 2 and 3 mean a message, whose length is in the next byte and in the upper two bits
//
// If the two bits are 3, the sender and the receiver of the message are set to valid IDs, and the
// term is set to the present term or one of the next three terms, so that the fuzzer need not guess
// these fields.
func (s *stepper) run(script []byte) {
	for len(script) > 0 && s.retired == nil {
		b := script[0]
		script = script[1:]
		switch b & 3 {
		case 0:
			for range min(int(b>>2), stepTicks-s.ticks) {
				s.ticks++
				s.now = s.now.Add(testTick)
				s.do(func(c *Core) { c.Tick(s.now) })
				if s.retired != nil {
					return
				}
			}
		case 1:
			s.do(func(c *Core) {
				if b>>7 == 1 {
					c.Change(c.Role().Term, stepChange(b))
					return
				}
				c.Propose(c.Role().Term, script[:min(len(script), int(b>>2))])
				c.Confirm(c.Role().Term, uint64(b))
			})
		default:
			if len(script) == 0 {
				return
			}
			n := min(int(script[0])+int(b>>6)<<8, len(script)-1)
			m := &raftpb.Message{}
			err := proto.Unmarshal(script[1:1+n], m)
			script = script[1+n:]
			if err != nil {
				continue
			}
			if b&3 == 3 {
				m.To, m.From, m.Term = new(uint64(1)), new(uint64(2+b>>2&1)), new(s.core.Role().Term+uint64(b>>3&3))
			}
			s.do(func(c *Core) { c.Step(m) })
		}
	}
}

// FuzzStep passes arbitrary decodable messages to a replica. The replica may retire, but must not
// hang, end the process, or keep or send much more data than the script contains.
func FuzzStep(f *testing.F) {
	for _, script := range stepScripts() {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > stepBytes {
			return
		}
		hangs := time.AfterFunc(stepTime, func() { panic("the replica hangs") })
		defer hangs.Stop()
		s := newStepper(t)
		s.run(script)
		if s.retired != nil {
			return
		}
		st, err := s.store.Load()
		if err != nil {
			t.Fatal(err)
		}
		// Two bytes of the script can make the replica send a message to every member. One byte
		// can also cause up to 63 ticks, and each tick can cause such messages.
		everybody := 3 + len(script)
		if most := 64 * (1 + len(script)) * everybody; s.sent > most {
			t.Fatalf("%d messages left, more than %d", s.sent, most)
		}
		bytes := s.taken
		for _, e := range st.Entries {
			bytes += proto.Size(e) + 1
		}
		if most := 64 * (64 + len(script)); bytes > most {
			t.Fatalf("%d bytes are kept of a script of %d", bytes, len(script))
		}
	})
}

func stepMessage(op byte, m *raftpb.Message) []byte {
	b, err := proto.Marshal(m)
	must(err)
	if len(b) > 255+3<<8 {
		must(errors.New("too long for a script"))
	}
	return append([]byte{op | byte(len(b)>>8)<<6, byte(len(b))}, b...)
}

// stepScripts returns scripts in which the replica becomes leader, follows another leader, loses
// its leadership, accepts entries, changes and snapshots, and receives false messages.
func stepScripts() [][]byte {
	message := func(kind raftpb.MessageType, change func(*raftpb.Message)) *raftpb.Message {
		m := &raftpb.Message{Type: kind.Enum()}
		if change != nil {
			change(m)
		}
		return m
	}
	entry := func(index, term uint64, kind raftpb.EntryType, data []byte) *raftpb.Entry {
		return &raftpb.Entry{Index: &index, Term: &term, Type: kind.Enum(), Data: data}
	}
	const dressed, next = 3, 3 | 1<<3 // a message of the present and of the next term
	join := func(parts ...[]byte) (script []byte) {
		for _, p := range parts {
			script = append(script, p...)
		}
		return script
	}
	yes := func(op byte, kind raftpb.MessageType) []byte { return stepMessage(op, message(kind, nil)) }
	elected := join([]byte{20 << 2, 20 << 2}, yes(next, raftpb.MsgPreVoteResp), yes(dressed, raftpb.MsgVoteResp))
	follows := stepMessage(next, message(raftpb.MsgApp, func(m *raftpb.Message) {
		m.Index, m.LogTerm, m.Commit = new(uint64(1)), new(uint64(1)), new(uint64(3))
		m.Entries = []*raftpb.Entry{entry(2, 2, raftpb.EntryNormal, nil),
			entry(3, 2, raftpb.EntryNormal, []byte("batch"))}
	}))
	change := &raftpb.ConfChangeV2{Changes: []*raftpb.ConfChangeSingle{{Type: raftpb.ConfChangeRemoveNode.Enum(),
		NodeId: new(uint64(1))}}}
	removed, err := proto.Marshal(change)
	must(err)
	changes := stepMessage(next, message(raftpb.MsgApp, func(m *raftpb.Message) {
		m.Index, m.LogTerm, m.Commit = new(uint64(1)), new(uint64(1)), new(uint64(2))
		m.Entries = []*raftpb.Entry{entry(2, 2, raftpb.EntryConfChangeV2, removed)}
	}))
	snapshot := stepMessage(next, message(raftpb.MsgSnap, func(m *raftpb.Message) {
		m.Snapshot = &raftpb.Snapshot{Data: enclose(1, testMembers(1, 2, 3), []byte("state")),
			Metadata: &raftpb.SnapshotMetadata{
				Index: new(uint64(9)), Term: new(uint64(2)), ConfState: &raftpb.ConfState{Voters: []uint64{1, 2, 3}}}}
	}))
	heardUpTo := func(index uint64) []byte {
		return stepMessage(dressed, message(raftpb.MsgAppResp, func(m *raftpb.Message) { m.Index = &index }))
	}
	heard := heardUpTo(2)
	tooFar := stepMessage(dressed,
		message(raftpb.MsgHeartbeat, func(m *raftpb.Message) { m.Commit = new(uint64(1 << 40)) }))
	return [][]byte{
		elected,
		join(elected, []byte{9, 'a', 'b'}, heard, []byte{20}, heard, []byte{9, 'c'}, follows),
		join(elected, heard, []byte{128 | 3<<4 | 1}, heardUpTo(3), []byte{4}, heardUpTo(4),
			[]byte{128 | 1<<4 | 3<<2 | 1}, heardUpTo(5), heardUpTo(6), []byte{20}),
		join(follows, []byte{5 << 2}, yes(dressed, raftpb.MsgHeartbeat), yes(next, raftpb.MsgVote), snapshot),
		join(snapshot, []byte{20 << 2}, yes(dressed, raftpb.MsgTimeoutNow), yes(dressed, raftpb.MsgVoteResp),
			[]byte{9}),
		join(changes, []byte{20 << 2, 20 << 2}),
		join(follows, tooFar),
		stepMessage(2, message(raftpb.MsgApp, func(m *raftpb.Message) {
			m.To, m.From, m.Term = new(uint64(1)),
				new(uint64(99)), new(^uint64(0))
		})),
	}
}

func TestStepScripts(t *testing.T) {
	want := []string{"leads", "leads", "leads", "follows to 9", "stands to 9", "stands to 2", "went back", "follows to 1"}
	for i, script := range stepScripts() {
		s := newStepper(t)
		s.run(script)
		st := s.core.Status()
		got := fmt.Sprint("follows to ", st.Commit)
		switch {
		case errors.Is(s.retired, ErrWentBack):
			got = "went back"
		case st.Leading:
			got = "leads"
		case st.Leader == 0:
			got = fmt.Sprint("stands to ", st.Commit)
		}
		if i >= len(want) || got != want[i] {
			t.Errorf("script %d %s: %+v", i, got, st)
		}
	}
}
