package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

// prepares sends a Prepare to a node, as the leader does, and returns the state in the answer.
func (g *group) prepares(n *node, raft uint64) byte {
	g.f.t.Helper()
	body := founding.AppendPrepare(nil, founding.Prepare{To: n.instance, Group: g.id, Raft: raft, Term: 1, At: g.at,
		Voters: g.config})
	answer := n.Answer(Asker{Instance: g.leader.instance, Addr: g.leader.cfg.Advertise}, body)
	if len(answer) < 4 || answer[1] != kindPrepared {
		g.f.t.Fatalf("%s answers % x", n.cfg.Name, answer)
	}
	b := answer[2:]
	_, size := binary.Uvarint(b)
	return b[size]
}

// TestAPreparedReplicaLastsInADirectory checks that an instance with a directory resumes a
// prepared replica after a restart, and never starts it twice.
func TestAPreparedReplicaLastsInADirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.bornDurably(3)
		d := newDisk()
		cfg := d.durable(f.config(3, 3))
		late := f.start(cfg)
		f.raft(2 * time.Second)
		g := f.newGroup()
		if state := g.prepares(late, 90); state != 0 || g.prepares(late, 90) != 0 {
			t.Fatalf("it answers %d", state)
		}
		f.settle()
		if late.calls() != "member, prepared" || late.place().Raft != 90 || d.state(t).Raft != 90 {
			t.Fatalf("its host was told %q of %x, and %x is stored", late.calls(), late.place().Raft, d.state(t).Raft)
		}
		f.raft(time.Second)
		late.stop()
		late = f.start(cfg)
		f.raft(3 * time.Second)
		if late.calls() != "prepared, member" || late.place().Raft != 90 {
			t.Errorf("after a start its host was told %q of %x", late.calls(), late.place().Raft)
		}
		late.Retired(90)
		f.settle()
		if state := g.prepares(late, 90); state != 1 || d.state(t).Raft != 0 {
			t.Errorf("asked for a replica that is over it answers %d", state)
		}
		late.stop()
		late = f.start(cfg)
		f.raft(3 * time.Second)
		if late.calls() != "member" || g.prepares(late, 90) != 1 || g.prepares(late, 91) != 0 {
			t.Errorf("after the next start its host was told %q", late.calls())
		}
	})
}

func TestRecoverGivesALostGroupUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfgs := f.bornDurably(3)
		ctx := context.Background()
		lost := f.oneGroup()
		n := f.nodes[2]
		if err := n.Recover(ctx, lost); err == nil || n.Status().Group != lost {
			t.Errorf("with a leader: %v", err)
		}
		f.nodes[0].stop()
		f.nodes[0].stop()
		f.raft(5 * time.Second)
		if err := n.Recover(ctx, lost+1); err == nil {
			t.Error("another group than its own was given up")
		}
		n.Floor(time.Now().UnixMilli() + 1000)
		if err := n.Recover(ctx, lost); err != nil {
			t.Fatal(err)
		}
		st := cfgs[2].Records.(*disk).state(t)
		if !strings.HasSuffix(n.calls(), "restart") || n.Status().Phase != Newborn ||
			!slices.Contains(st.GaveUp, lost) || st.FloorUnixMS == 0 {
			t.Errorf("when it has returned the host was told %q, and stored is %+v", n.calls(), st)
		}
		for i := range 2 {
			cfg := cfgs[i]
			cfg.Records = newDisk()
			f.start(cfg)
		}
		f.raft(5 * time.Second)
		if f.oneGroup() == lost {
			t.Error("still the group that was given up")
		}
		done, cancel := context.WithCancel(ctx)
		cancel()
		if err := n.Recover(done, 1); !errors.Is(err, context.Canceled) && err == nil {
			t.Errorf("with a context that has ended: %v", err)
		}
		n.Close()
		if err := n.Recover(ctx, lost); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestRecoverSaysThatTheDirectoryFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfgs := f.bornDurably(3)
		lost, n, d := f.oneGroup(), f.nodes[2], cfgs[2].Records.(*disk)
		f.nodes[0].stop()
		f.nodes[0].stop()
		f.raft(5 * time.Second)
		d.mu.Lock()
		d.fails = errDisk
		d.mu.Unlock()
		if err := n.Recover(context.Background(), lost); !errors.Is(err, ErrUnsaved) {
			t.Errorf("it says %v", err)
		}
	})
}

// TestAdoptedSettingsAreTold checks that adopted settings are sent to other instances, and that the
// settings of an instance that joins later are compared with them.
func TestAdoptedSettingsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		id := f.born(3)
		s := f.nodes[0].cfg.Settings
		s.SessionTTL = 17 * time.Second
		for _, n := range f.nodes {
			n.Adopt(id, s)
			n.Adopt(id+1, founding.Settings{})
		}
		f.raft(time.Second)
		const warning = " on this instance and 17s in the group, and each session gets the shorter one"
		for i, want := range map[int]int{3: 1, 4: 0} {
			before := f.logged(warning)
			cfg := f.config(i, 3)
			if want == 0 {
				cfg.Settings.SessionTTL = s.SessionTTL
			}
			f.start(cfg)
			f.raft(2 * time.Second)
			if got := f.logged(warning) - before; got != want {
				t.Errorf("%d warnings of an instance with %v", got, cfg.Settings.SessionTTL)
			}
		}
	})
}

func TestSoloHasAReportAndAStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfg := f.config(0, 1)
		cfg.Join, cfg.Settings = nil, founding.Settings{Solo: true, Voters: 3, SessionTTL: time.Second}
		n := f.start(cfg)
		f.raft(time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := n.QueryStatus(ctx); !errors.Is(err, ErrNoLeader) {
			t.Errorf("without a leader: %v", err)
		}
		self := n.place()
		n.lead(1, voters.Facts{
			Self: self.Raft, Settings: voters.Settings{Voters: 3}, Config: voters.Config{Voters: []uint64{self.Raft}},
			Replicas:   []voters.Replica{{ID: self.Raft, Instance: self.Instance, Active: true}},
			Registered: []voters.Registered{n.registered()},
		})
		time.Sleep(lead.Pause) // until the last evaluation is not fresh any more
		c := n.mustQuery(n, 0)
		if r, ok := n.Report(); !ok || r.Due || c.Due || !c.Known || c.MayStop || len(n.carriedOut()) > 0 {
			t.Errorf("the report is %+v, the status %+v", r, c)
		}
		n.RemovedPeer(nodeidtest.ID(5), addrOf(1))
		f.settle()
	})
}
