package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// bornDurably starts n instances with directories, which find each other through one name in Join.
// It returns their configurations when they are one group.
func (f *fleet) bornDurably(n int) []Config {
	f.t.Helper()
	var cfgs []Config
	for i := range n {
		cfg := newDisk().durable(f.config(i, n))
		cfg.Join = []string{"all.example:7947"}
		cfgs = append(cfgs, cfg)
	}
	f.name(cfgs)
	for _, cfg := range cfgs {
		f.start(cfg)
	}
	f.raft(2500 * time.Millisecond)
	f.oneGroup()
	return cfgs
}

// name sets what the name in Join resolves to: the configured addresses of the instances.
func (f *fleet) name(cfgs []Config) {
	var hosts []string
	for _, cfg := range cfgs {
		hosts = append(hosts, strings.TrimSuffix(cfg.Advertise, ":7947"))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dns["all.example"] = hosts
}

func restartAllAt(t *testing.T, addrs ...string) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfgs := f.bornDurably(3)
		group := f.nodes[0].Status().Group
		was := map[string]string{}
		for _, n := range f.nodes {
			was[n.cfg.Name] = fmt.Sprintf("%x %x", n.Status().Instance, n.raft)
		}
		f.stop()
		for life := uint64(2); life <= 3; life++ {
			for i := range cfgs {
				cfgs[i].Advertise = addrs[i]
			}
			f.name(cfgs)
			for _, cfg := range cfgs {
				f.start(cfg)
			}
			f.raft(4 * time.Second)
			if got := f.oneGroup(); got != group {
				t.Fatalf("group %x, want %x as before", got, group)
			}
			for _, n := range f.nodes {
				s := n.Status()
				if got := n.calls(); !strings.HasPrefix(got, "bound, member") || strings.Contains(got, "restart") {
					t.Errorf("%s's host was told %q", n.cfg.Name, got)
				}
				if got := fmt.Sprintf("%x %x", s.Instance, n.raft); got != was[n.cfg.Name] || s.Life != life ||
					s.Waiting != "" {
					t.Errorf("%s is %s in life %d and waits for %q, want %s in life %d", n.cfg.Name, got, s.Life,
						s.Waiting, was[n.cfg.Name], life)
				}
				for _, o := range f.nodes {
					if v, _ := n.Voter(o.raft); v.Addr != o.cfg.Advertise || v.Instance != o.Status().Instance ||
						v.Life != life {
						t.Errorf("%s has %+v in its book for %s at %s", n.cfg.Name, v, o.cfg.Name, o.cfg.Advertise)
					}
				}
			}
			time.Sleep(2 * time.Second)
			if book := cfgs[0].Records.(*disk).state(t).Voters; !slices.ContainsFunc(book,
				func(v Voter) bool { return v.Addr == addrs[2] && v.Life == life }) {
				t.Errorf("the stored book says %+v", book)
			}
			f.stop()
			addrs = append(addrs[1:], addrs[0]) // each instance gets the address of another one
		}
	})
}

func TestAllRestartAtTheSameAddresses(t *testing.T) { restartAllAt(t, addrOf(0), addrOf(1), addrOf(2)) }
func TestAllRestartAtNewAddresses(t *testing.T)     { restartAllAt(t, addrOf(20), addrOf(21), addrOf(22)) }
func TestAllRestartWithSwappedAddresses(t *testing.T) {
	restartAllAt(t, addrOf(1), addrOf(2), addrOf(0))
}
func TestTwoOfThreeRestartWithSwappedAddresses(t *testing.T) {
	restartAllAt(t, addrOf(1), addrOf(0), addrOf(2))
}

// TestOneVoterRestartsElsewhere restarts an instance at a new address while the group runs. The
// others learn the new address from the instance itself, which keeps its raft ID.
func TestOneVoterRestartsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfgs := f.bornDurably(3)
		raft := f.nodes[0].raft
		f.nodes[0].stop()
		f.raft(20 * time.Second)
		cfgs[0].Advertise = addrOf(33)
		f.name(cfgs)
		n := f.start(cfgs[0])
		f.raft(3 * time.Second)
		f.oneGroup()
		if n.raft != raft {
			t.Errorf("its raft ID is %x, want %x", n.raft, raft)
		}
		for _, o := range f.nodes {
			if v, _ := o.Voter(raft); v.Addr != addrOf(33) || v.Life != 2 {
				t.Errorf("%s has it at %+v", o.cfg.Name, v)
			}
		}
	})
}

// TestNothingIsSaidBeforeItIsStored checks that a process that dies during a Save has sent nothing
// about what it was saving. The asking instance waits, and founding succeeds when the process runs
// again.
func TestNothingIsSaidBeforeItIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		var disks []*disk
		for i := range 3 {
			disks = append(disks, newDisk())
			f.start(disks[i].durable(f.config(i, 3)))
		}
		for _, d := range disks {
			d.mu.Lock()
			d.stuck = true
			d.mu.Unlock()
		}
		f.raft(5 * time.Second)
		for i, n := range f.nodes {
			if got := n.calls(); got != "" || len(disks[i].claims) != 1 {
				t.Errorf("%s's host was told %q while nothing could be stored", n.cfg.Name, got)
			}
		}
		for _, d := range disks {
			d.mu.Lock()
			d.stuck = false
			d.mu.Unlock()
		}
		f.raft(30 * time.Second)
		f.oneGroup()
	})
}

// TestRule5DropsTheCharterDurably checks rule 5: an instance is bound, and the others return with
// new IDs. The charter and its raft ID are deleted from the directory before the new incarnation
// begins.
func TestRule5DropsTheCharterDurably(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		for i := range 3 {
			n := f.start(newDisk().durable(f.config(i, 3)))
			n.mute = true // no leader is elected, so nothing is born
		}
		d := f.nodes[0].cfg.Records.(*disk)
		f.raft(2 * time.Second)
		st := d.state(t)
		if st.Phase != Bound || st.Raft == 0 {
			t.Fatalf("after two seconds the directory holds %v of raft ID %x", st.Phase, st.Raft)
		}
		f.nodes[1].stop()
		f.raft(time.Minute)
		if again := d.state(t); again.Group != st.Group {
			t.Error("it gave the charter up though one of the others, which may know that the group is born, was away")
		}
		if w := f.nodes[0].Status().Waiting; !strings.Contains(w, "all instances are in reach") {
			t.Errorf("it waits for %q", w)
		}
		f.start(newDisk().durable(f.config(1, 3))) // its directory is lost
		for _, n := range f.nodes {
			n.mu.Lock()
			n.mute = false
			n.mu.Unlock()
		}
		f.nodes[0].mute = true
		f.raft(40 * time.Second)
		f.nodes[0].mute = false
		f.raft(20 * time.Second)
		f.oneGroup()
		if again := d.state(t); again.Instance == st.Instance && again.Raft == st.Raft && again.Group != st.Group {
			t.Errorf("the directory still holds the raft ID of the charter that was given up: %+v", again)
		}
	})
}

// TestDurableMemberKeepsItsGroupAndNewbornsWait checks rules 6 and 7: a durable member never gives
// up its group and names the missing voters. Newborns wait for this member, and report its name and
// what to do.
func TestDurableMemberKeepsItsGroupAndNewbornsWait(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfgs := f.bornDurably(3)
		keeper := f.nodes[2]
		group := keeper.Status().Group
		f.nodes[0].stop() // its end is not observed: the leader is lost later
		f.raft(20 * time.Second)
		f.nodes[0].stop()
		f.raft(time.Minute)
		waits := keeper.Status().Waiting
		if !strings.Contains(waits, `"n0" (10.0.0.1:7947) (no answer since 2000-01-01 00:00:`) ||
			!strings.Contains(waits, "UTC or earlier)") ||
			!strings.Contains(waits, "bring them back") {
			t.Errorf("it waits for %q, want the missing voters, since when, and what to do", waits)
		}
		// An instance that is started without a leader cannot tell when the last one was lost.
		keeper.stop()
		keeper = f.start(cfgs[2])
		f.raft(time.Minute)
		if waits := keeper.Status().Waiting; !strings.Contains(waits, " or earlier, as this instance has known none") {
			t.Errorf("after its restart it waits for %q, which invents when the leader was lost", waits)
		}
		for i := range 2 { // the directories of both are lost
			cfg := newDisk().durable(f.config(i, 3))
			cfg.Join = cfgs[i].Join
			f.start(cfg)
		}
		f.raft(10 * time.Minute)
		if s := keeper.Status(); s.Group != group || s.Phase != PhaseMember {
			t.Errorf("the durable member is %v of group %x", s.Phase, s.Group)
		}
		for _, n := range f.nodes[1:] {
			if s := n.Status(); s.Phase != Newborn || !strings.Contains(s.Waiting, `"n2"`) ||
				!strings.Contains(s.Waiting, "bring back its voters") {
				t.Errorf("%s is %v and waits for %q", n.cfg.Name, s.Phase, s.Waiting)
			}
		}
		if n := f.logged("bring"); n > 12 {
			t.Errorf("%d lines about it in ten minutes", n)
		}
		keeper.stop()
		f.start(newDisk().durable(f.config(2, 3))) // as Status.Waiting advises
		f.raft(10 * time.Second)
		f.oneGroup()
	})
}

// TestPlainMembersAndNewbornsAcrossRestarts checks that an instance stores the group that it has
// joined, and that a newborn has another ID after a restart.
func TestPlainMembersAndNewbornsAcrossRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfgs := f.bornDurably(3)
		cfg := newDisk().durable(f.config(7, 3))
		cfg.Join = cfgs[0].Join
		late := f.start(cfg)
		f.raft(2 * time.Second)
		id := late.Status().Instance
		late.stop()
		late = f.start(cfg)
		f.raft(3 * time.Second)
		f.oneGroup()
		if late.Status().Instance != id || late.calls() != "member" {
			t.Errorf("it is instance %x and was told %q, want %x, a member", late.Status().Instance, late.calls(), id)
		}

		alone := newDisk().durable(f.config(9, 3))
		alone.Join = []string{addrOf(50)}
		n := f.start(alone)
		f.raft(time.Second)
		id = n.Status().Instance
		n.stop()
		n = f.start(alone)
		if s := n.Status(); s.Instance == id || s.Life != 2 {
			t.Errorf("a newborn that was started again is %x in life %d", s.Instance, s.Life)
		}
	})
}

func TestSoloGoesOnAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfg := newDisk().durable(f.config(0, 1))
		cfg.Join, cfg.Settings = nil, founding.Settings{Solo: true, Voters: 3, SessionTTL: time.Second}
		n := f.start(cfg)
		f.raft(time.Second)
		group := n.Status().Group
		n.stop()
		n = f.start(cfg)
		f.raft(time.Second)
		if s := n.Status(); s.Group != group || s.Phase != PhaseMember || n.calls() != "bound, member" {
			t.Errorf("%+v, host told %q", s, n.calls())
		}
		n.stop()
		with := f.config(0, 3)
		with.Records, with.Key, with.Host, with.Net = cfg.Records, n.cfg.Key, n, n.port
		if _, err := Start(with); !errors.Is(err, ErrDirectory) ||
			!strings.Contains(err.Error(), "start without Join, or empty the directory") {
			t.Errorf("with Join: %v", err)
		}
	})
}
