package cluster

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// This method checks that the node permanently refuses to take part, that its error contains these
// words, and that it was never bound.
func (n *node) refuses(before string, words ...string) {
	n.f.t.Helper()
	err := n.failure()
	if !errors.Is(err, ErrDirectory) || n.calls() != before+"refused" {
		n.f.t.Fatalf("%s's host was told %q, %v; want that it refuses", n.cfg.Name, n.calls(), err)
	}
	_, again := Begins(n.cfg.Records, "")
	for _, w := range words {
		if !strings.Contains(err.Error(), w) || again == nil || !strings.Contains(again.Error(), w) {
			n.f.t.Errorf("%s says %v, and at its next start %v; want %q in both", n.cfg.Name, err, again, w)
		}
	}
	if s := n.Status(); s.Waiting == "" || n.Answer(Asker{Addr: "x"}, []byte("\x01\x01\x00\x00\x00\x00")) != nil {
		n.f.t.Errorf("%s answers or does not say why not: %+v", n.cfg.Name, s)
	}
}

// TestACopiedDirectoryIsRefused starts an instance with a copy of another one's directory. The copy
// has a higher start number than a running original, and the same start number as an original that
// was stopped.
func TestACopiedDirectoryIsRefused(t *testing.T) {
	slow.UnderRace(t)
	for name, stopped := range map[string]bool{"copied while it ran": false, "copied while it was stopped": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				defer f.stop()
				cfgs := f.bornDurably(3)
				if stopped {
					f.nodes[0].stop()
				}
				copied := cfgs[0]
				copied.Records, copied.Advertise = cfgs[0].Records.(*disk).copied(), addrOf(40)
				if stopped {
					f.start(cfgs[0])
					f.raft(3 * time.Second)
				}
				c := f.start(copied)
				f.raft(3 * time.Second)
				c.refuses("", addrOf(0), "empty this one")
				c.stop()
				f.raft(30 * time.Second)
				f.oneGroup()
				for _, n := range f.nodes {
					if strings.Contains(n.calls(), "refused") {
						t.Errorf("%s was told %q", n.cfg.Name, n.calls())
					}
				}
			})
		})
	}
}

// TestACopyThatWasCutOffIsFoundOutLater starts a copy that cannot reach the original. When the two
// can reach each other, exactly one of them must refuse to take part.
func TestACopyThatWasCutOffIsFoundOutLater(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfgs := f.bornDurably(3)
		original := f.nodes[0]
		copied := cfgs[0]
		copied.Records, copied.Advertise = cfgs[0].Records.(*disk).copied(), addrOf(40)
		for i := range 3 {
			f.net.cut(addrOf(i), addrOf(40))
		}
		c := f.start(copied)
		c.mute = true
		f.raft(20 * time.Second)
		f.net.heal()
		f.raft(time.Minute)
		if n := strings.Count(c.calls()+original.calls(), "refused"); n != 1 {
			t.Errorf("the original was told %q and the copy %q, want exactly one to refuse", original.calls(),
				c.calls())
		}
	})
}

// TestTwinsStartedTogether starts two instances with copies of one directory at the same time, and
// checks that exactly one of them refuses.
func TestTwinsStartedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfgs := f.bornDurably(3)
		f.stop()
		copied := cfgs[0]
		copied.Records, copied.Advertise = cfgs[0].Records.(*disk).copied(), addrOf(40)
		f.name(append(cfgs, copied))
		twins := []*node{f.start(copied), f.start(cfgs[0])}
		f.start(cfgs[1])
		f.start(cfgs[2])
		f.raft(10 * time.Second)
		if n := strings.Count(twins[0].calls()+" "+twins[1].calls(), "refused"); n != 1 {
			t.Errorf("they were told %q and %q, want exactly one to refuse", twins[0].calls(), twins[1].calls())
		}
	})
}

func TestADirectoryRestoredFromAnOlderCopyIsRefused(t *testing.T) {
	slow.UnderRace(t)
	for _, name := range []string{"while the others run", "while all were down"} {
		t.Run(name, func(t *testing.T) { restoreOlder(t, name) })
	}
}

func restoreOlder(t *testing.T, name string) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfgs := f.bornDurably(3)
		old := cfgs[0].Records.(*disk).copied()
		for range 3 {
			f.nodes[0].stop()
			f.start(cfgs[0])
			f.nodes = append(f.nodes[len(f.nodes)-1:], f.nodes[:len(f.nodes)-1]...)
			f.raft(5 * time.Second)
			f.oneGroup()
		}
		f.raft(3 * time.Second) // the others have stored their address books
		if name == "while all were down" {
			f.stop()
			f.net.muffle(addrOf(60), true) // the others are still settling when n starts
			for _, cfg := range cfgs[1:] {
				cfg.Join = append(slices.Clone(cfg.Join), addrOf(60))
				f.start(cfg)
			}
		} else {
			f.nodes[0].stop()
		}
		restored := cfgs[0]
		restored.Records = old
		n := f.start(restored)
		f.raft(3 * time.Second)
		n.refuses("", "restored from an older copy", "empty the directory, and the instance joins as a new one")
		n.stop()
		restored.Records = newDisk() // as the error advises
		f.start(restored)
		f.raft(3 * time.Second)
		f.oneGroup()
	})
}

// TestMovedInstancesAreNoCopies checks that an instance that has moved does not count as a copy,
// even if another instance now has its earlier address.
func TestMovedInstancesAreNoCopies(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfgs := f.bornDurably(3)
		for round := range 6 {
			f.nodes[0].stop()
			f.nodes[0].stop()
			cfgs[0].Advertise, cfgs[1].Advertise = cfgs[1].Advertise, cfgs[0].Advertise
			f.name(cfgs)
			f.start(cfgs[0])
			f.start(cfgs[1])
			f.nodes = append(f.nodes[1:], f.nodes[0])
			f.raft(time.Duration(3+round) * time.Second)
			f.oneGroup()
		}
		if f.logged("copy") != 0 {
			t.Error(strings.Join(f.logs, ""))
		}
	})
}

func TestDirectoriesThatDoNotFitAreRefusedAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfgs := f.bornDurably(3)
		was := f.nodes[0]
		was.stop()
		good := cfgs[0].Records.(*disk)
		try := func(what string, change func(cfg *Config, d *disk), want ...string) {
			t.Helper()
			cfg := was.cfg
			d := good.copied()
			cfg.Records = d
			change(&cfg, d)
			before := d.copied().values
			c, err := Start(cfg)
			if err == nil {
				c.Close()
				t.Errorf("%s: it started", what)
				return
			}
			for _, w := range want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%s: %v, want %q in it", what, err, w)
				}
			}
			for name, b := range before {
				if string(d.values[name]) != string(b) {
					t.Errorf("%s: the record %s was changed", what, name)
				}
			}
		}
		try("another label", func(cfg *Config, _ *disk) { cfg.Label = "other" }, `cluster "test"`, `"other"`)
		try("another ID", func(cfg *Config, _ *disk) { cfg.Key = nodeidtest.Key(4711) }, "Begins")
		try("no Join", func(cfg *Config, _ *disk) { cfg.Join, cfg.Settings.Solo = nil, true }, "set Join as before")
		try("full", func(_ *Config, d *disk) { d.fails = errDisk }, errDisk.Error(), "repair it")
		try("a host that has no directory", func(cfg *Config, _ *disk) { cfg.Host = struct{ Host }{was} },
			"DurableHost")
		for _, name := range []string{recordIdentity, recordState, recordBook} {
			try("a flipped bit", func(_ *Config, d *disk) { d.values[name][3] ^= 4 }, name, "damaged",
				"empty the directory")
			try("a record that is missing", func(_ *Config, d *disk) { delete(d.values, name) }, name, "missing")
		}
	})
}

func TestChangedSettingsAreWarnedOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfgs := f.bornDurably(3)
		f.nodes[0].stop()
		cfgs[0].Settings.SessionTTL *= 2
		cfgs[0].Name = "renamed"
		n := f.start(cfgs[0])
		f.raft(3 * time.Second)
		f.oneGroup()
		told := f.logged("SessionTTL is 20s on this instance and 10s in the group")
		if told != 1 || f.logged("another name") != 1 || n.failure() != nil {
			t.Error(strings.Join(f.logs, ""))
		}
	})
}

// TestADirectoryThatFails checks that an instance whose directory fails makes no new promise, in
// any phase, and otherwise continues.
func TestADirectoryThatFails(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		ill := newDisk()
		first := f.start(ill.durable(f.config(0, 3)))
		time.Sleep(time.Second)
		ill.mu.Lock()
		ill.fails = errDisk
		ill.mu.Unlock()
		f.start(newDisk().durable(f.config(1, 3)))
		f.start(newDisk().durable(f.config(2, 3)))
		f.raft(time.Minute)
		if got := first.calls(); got != "unsaved, restart" || !errors.Is(first.failure(), ErrUnsaved) ||
			!errors.Is(first.failure(), errDisk) {
			t.Errorf("its host was told %q, %v", got, first.failure())
		}
		for _, n := range f.nodes {
			if s := n.Status(); s.Phase != Newborn ||
				!strings.Contains(s.Waiting, "cannot be written (no space left on device)") {
				t.Errorf("%s is %v and waits for %q", n.cfg.Name, s.Phase, s.Waiting)
			}
		}
		first.stop()
		ill.fails = nil
		f.start(ill.durable(f.config(0, 3)))
		f.raft(20 * time.Second)
		f.oneGroup()

		// A voter whose directory fails stops voting and remains a member.
		n := f.nodes[0]
		d := n.cfg.Records.(*disk)
		d.mu.Lock()
		d.fails = errDisk
		d.mu.Unlock()
		last := f.nodes[2]
		last.stop()
		last.cfg.Advertise = addrOf(44) // so that the address book has to be written
		f.start(last.cfg)
		f.raft(20 * time.Second)
		f.oneGroup()
		if !strings.HasSuffix(n.calls(), "unsaved") && !strings.Contains(n.calls(), "unsaved, voters") {
			t.Errorf("the voter's host was told %q", n.calls())
		}
	})
}

func TestAMemberWithoutADirectoryThatWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfgs := f.bornDurably(3)
		d := newDisk()
		cfg := d.durable(f.config(8, 3))
		cfg.Join = cfgs[0].Join
		cfg.Logger = slog.New(slog.NewTextHandler(f, nil))
		n := f.start(cfg)
		d.mu.Lock()
		d.fails = errDisk
		d.mu.Unlock()
		f.raft(3 * time.Second)
		f.oneGroup()
		if got := n.calls(); got != "member, unsaved" {
			t.Errorf("its host was told %q", got)
		}
		if st := d.state(t); st.Phase != founding.Newborn {
			t.Errorf("the directory holds %v", st.Phase)
		}
	})
}
