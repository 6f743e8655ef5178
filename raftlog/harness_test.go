package raftlog

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/clock"
)

// party is a group of Logs in a synctest bubble. Its network loses the messages that the function
// lose selects.
type party struct {
	t    *testing.T
	mu   sync.Mutex // guards the rest
	logs map[uint64]*Log
	apps map[uint64]*recorder
	lose func(m *raftpb.Message) bool
	snap func(m *raftpb.Message, done func(bool)) // nil means that snapshots are delivered
}

// startParty starts the voters 1 to n. It calls change with each Config before Start.
func startParty(t *testing.T, n int, change func(*Config)) *party {
	t.Helper()
	p := &party{t: t, logs: map[uint64]*Log{}, apps: map[uint64]*recorder{}}
	voters := []uint64{}
	for id := range uint64(n) {
		voters = append(voters, id+1)
	}
	for _, id := range voters {
		p.start(id, newTestStore(t, id, voters), change)
	}
	t.Cleanup(p.close)
	return p
}

func (p *party) start(id uint64, store Store, change func(*Config)) *Log {
	p.t.Helper()
	app := &recorder{}
	cfg := Config{Group: testGroup, ID: id, Store: store, Applier: app, Send: p.send, SendSnapshot: p.sendSnapshot,
		Clock: clock.Monotonic(), Logger: quiet}
	if change != nil {
		change(&cfg)
	}
	l, err := Start(cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	app.log = l
	p.logs[id], p.apps[id] = l, app
	return l
}

func (p *party) close() {
	for _, l := range p.logs {
		l.Close()
	}
}

func (p *party) to(m *raftpb.Message) *Log {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lose != nil && p.lose(m) {
		return nil
	}
	return p.logs[m.GetTo()]
}

func (p *party) send(ms []*raftpb.Message) {
	for _, m := range ms {
		if m == nil {
			p.t.Error("nothing was sent as a message")
			continue
		}
		p.mu.Lock()
		app := p.apps[m.GetFrom()]
		p.mu.Unlock()
		if app == nil {
			continue // the replica is not registered yet
		}
		app.view(func(r *recorder) { r.open = true })
		if m.GetType() == raftpb.MsgApp {
			app.view(func(r *recorder) {
				if !slices.Contains(r.roles, Role{Term: m.GetTerm(), Leader: m.GetFrom(), Leading: true}) {
					p.t.Errorf("an append of term %d left before the role was reported", m.GetTerm())
				}
			})
		}
		if l := p.to(m); l != nil {
			l.Step(m)
		}
	}
}

func (p *party) sendSnapshot(m *raftpb.Message, done func(bool)) {
	p.mu.Lock()
	snap := p.snap
	p.mu.Unlock()
	if snap != nil {
		snap(m, done)
		return
	}
	l := p.to(m)
	if l != nil {
		l.Step(m)
	}
	done(l != nil)
}

func (p *party) losing(lose func(m *raftpb.Message) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = lose
}

func (p *party) lead() (*Log, *recorder) {
	p.t.Helper()
	for range 100 {
		synctest.Wait()
		for id, l := range p.logs {
			if st := l.Status(); st.Leading && p.apps[id].leads(st.Term) {
				return l, p.apps[id]
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.t.Fatal("no replica leads after 5 s")
	return nil, nil
}

// recorder is an Applier that records its calls. A test can make it fail.
type recorder struct {
	log *Log

	mu           sync.Mutex // guards the rest
	roles        []Role
	led          []uint64
	text         string // all applied batches, concatenated
	entries      int
	confirmed    []uint64
	restored     []uint64
	configs      []Configuration
	turns        int
	open         bool // another method was called, or a message sent, since the last TurnEnd
	retired      []error
	late         int // calls after Retired
	onApply      func() error
	onTake       func() error
	onStep       func(left int)
	onJoin       func()
	steps        int // steps of a capture before the last step
	stepped      int
	enough       bool // makes the present step the last one
	onRestore    func() error
	onRole       func(Role)
	onRetired    func()
	onConfigured func(Configuration)
	panics       string // name of the method that must panic
}

func (r *recorder) enter(call string) func() {
	r.mu.Lock()
	if r.panics == call {
		r.mu.Unlock()
		panic(errTest)
	}
	if len(r.retired) > 0 {
		r.late++
	}
	r.open = true
	return r.mu.Unlock
}

func (r *recorder) Role(role Role) {
	defer r.enter("Role")()
	r.roles = append(r.roles, role)
	if r.onRole != nil {
		r.onRole(role)
	}
}

func (r *recorder) Apply(index, term uint64, b []byte) error {
	defer r.enter("Apply")()
	if r.onApply != nil {
		if err := r.onApply(); err != nil {
			return err
		}
	}
	r.text += string(b)
	r.entries++
	return nil
}

func (r *recorder) Leads(term uint64) {
	defer r.enter("Leads")()
	r.led = append(r.led, term)
}

func (r *recorder) Confirmed(term, round uint64) {
	defer r.enter("Confirmed")()
	r.confirmed = append(r.confirmed, round)
}

func (r *recorder) Snapshot() (Capture, error) {
	defer r.enter("Snapshot")()
	if r.onTake != nil {
		if err := r.onTake(); err != nil {
			return nil, err
		}
	}
	return &capturing{r, r.text, r.steps}, nil
}

type capturing struct {
	r    *recorder
	text string
	left int
}

func (c *capturing) Step() bool {
	c.r.mu.Lock()
	onStep := c.r.onStep
	c.r.mu.Unlock()
	if onStep != nil {
		onStep(c.left) // called without the lock, because it may sleep
	}
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	if len(c.r.retired) > 0 {
		c.r.late++
	}
	c.r.stepped++
	c.left--
	return c.left < 0 || c.r.enough
}

func (c *capturing) AppendTo(b []byte, _ func()) []byte {
	c.r.mu.Lock()
	join := c.r.onJoin
	c.r.mu.Unlock()
	if join != nil {
		join()
	}
	return append(b, c.text...)
}

func (r *recorder) Restore(index, term uint64, state []byte) error {
	defer r.enter("Restore")()
	if r.onRestore != nil {
		if err := r.onRestore(); err != nil {
			return err
		}
	}
	r.text = string(state)
	r.restored = append(r.restored, index)
	return nil
}

func (r *recorder) Configured(c Configuration) {
	defer r.enter("Configured")()
	r.configs = append(r.configs, c)
	if r.onConfigured != nil {
		r.onConfigured(c)
	}
}

func (r *recorder) TurnEnd() {
	defer r.enter("TurnEnd")()
	r.open = false
	r.turns++
}

func (r *recorder) Retired(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retired = append(r.retired, err)
	if r.onRetired != nil {
		r.onRetired()
	}
}

func (r *recorder) leads(term uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.led) > 0 && r.led[len(r.led)-1] == term
}

func (r *recorder) view(look func(*recorder)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	look(r)
}

// disk is a Store that a test can slow down, block, or make fail or panic.
type disk struct {
	*MemoryStore
	mu      sync.Mutex // guards the rest
	delay   time.Duration
	gate    chan struct{} // Save blocks until the channel is closed
	err     error
	panics  any
	saves   int
	closed  int
	writing func(ctx context.Context) error // called by Prepare
	written *raftpb.Snapshot                // the last prepared snapshot
	named   int                             // number of prepared snapshots that a Save has named
	preps   int                             // number of calls of Prepare that have not returned
	inline  bool
	loadErr error
}

func (d *disk) Volatile() bool { return d.inline }

func (d *disk) Load() (State, error) {
	if d.loadErr != nil {
		return State{}, d.loadErr
	}
	return d.MemoryStore.Load()
}

func (d *disk) Save(b Batch) error {
	d.mu.Lock()
	gate, err, p, delay := d.gate, d.err, d.panics, d.delay
	d.saves++
	d.mu.Unlock()
	if gate != nil {
		<-gate
	}
	time.Sleep(delay)
	if p != nil {
		panic(p)
	}
	if err != nil {
		return err
	}
	if b.Prepared {
		d.set(func(d *disk) {
			if d.named++; d.written != b.Snapshot {
				panic("a snapshot is named that was not prepared")
			}
		})
	}
	return d.MemoryStore.Save(b)
}

func (d *disk) Prepare(ctx context.Context, s *raftpb.Snapshot) error {
	d.mu.Lock()
	d.preps++
	twice, writing := d.preps > 1, d.writing
	d.mu.Unlock()
	if twice {
		panic("two snapshots are being prepared")
	}
	defer d.set(func(d *disk) { d.preps-- })
	if writing != nil {
		if err := writing(ctx); err != nil {
			return err
		}
	}
	d.set(func(d *disk) { d.written = s })
	return nil
}

func (d *disk) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.preps > 0 {
		panic("closed while a snapshot is being prepared")
	}
	d.closed++
	return nil
}

func (d *disk) names() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.named
}

func (d *disk) set(change func(*disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}
