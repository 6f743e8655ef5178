package e2e

import (
	"errors"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

// hungLimit is the limit that Node.Close documents, 5 s for each call that may hang, plus a margin.
const hungLimit = 20 * time.Second

// hungRecords implements cluster.Records for one node. Its Save blocks until the test closes a
// channel.
type hungRecords struct {
	cluster.Records
	hangs chan struct{}
	saves chan struct{}
}

func (h *hungRecords) Save(changes map[string][]byte) error {
	h.saves <- struct{}{}
	<-h.hangs
	return h.Records.Save(changes)
}

// In TestCloseDoesNotWaitForRecords package cluster hangs in a Save. The Save returns only after
// Close. The node must then not carry out the decision that it has saved.
func TestCloseDoesNotWaitForRecords(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		root, f := t.TempDir(), newFleet(t)
		h := &hungRecords{hangs: make(chan struct{}), saves: make(chan struct{}, 100)}
		for i := range 3 {
			e := f.world(i)
			if i == 1 {
				e.Records = func(r cluster.Records) cluster.Records {
					h.Records = r
					return savedOnce{h, new(bool)}
				}
			}
			n, err := start(t.Context(), durableConfig(f, root, i, i), e)
			if err != nil {
				t.Fatal(err)
			}
			f.nodes = append(f.nodes, n)
		}
		<-h.saves // the node is about to be bound to a charter
		closed := make(chan error, 1)
		go func() { closed <- f.nodes[1].Close() }()
		select {
		case err := <-closed:
			wantIs(t, err, cluster.ErrHung)
		case <-time.After(hungLimit):
			t.Errorf("Close has not returned after %v", hungLimit)
			close(h.hangs)
			return
		}
		wantIs(t, f.nodes[1].Close(), nil)
		wantIs(t, f.nodes[1].Err(), mortise.ErrClosed)
		close(h.hangs)
		time.Sleep(time.Minute) // by now any effect would have happened
		if r := f.nodes[1].Replica(); r != nil {
			t.Error("a closed node has got a replica")
		}
		if len(h.saves) > 0 {
			t.Error("a closed node saves")
		}
	})
}

// savedOnce lets only the first Save succeed, because that Save belongs to Start.
type savedOnce struct {
	*hungRecords
	begun *bool
}

func (s savedOnce) Save(changes map[string][]byte) error {
	if !*s.begun {
		*s.begun = true
		return s.Records.Save(changes)
	}
	return s.hungRecords.Save(changes)
}

func TestCloseDoesNotWaitForTheLog(t *testing.T) {
	slow.UnderRace(t)
	for _, after := range []time.Duration{0, time.Second, 3 * time.Second, 30 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				root, f := t.TempDir(), newFleet(t)
				var disks []*disk
				for i := range 3 {
					e, d := f.world(i), &disk{FS: storage.OSFS()}
					e.Files = d
					n, err := start(t.Context(), durableConfig(f, root, i, i), e)
					if err != nil {
						t.Fatal(err)
					}
					f.nodes, disks = append(f.nodes, n), append(disks, d)
				}
				time.Sleep(after)
				for _, d := range disks {
					d.delay.Store(int64(time.Hour))
				}
				// By now an instance that founds a group hangs in its first write.
				time.Sleep(2 * time.Second)
				for i, n := range f.nodes {
					began := time.Now()
					err := n.Close()
					took := time.Since(began)
					if took > hungLimit {
						t.Errorf("closing node %d took %v", i, took)
					}
					if err != nil && !errors.Is(err, raftlog.ErrHung) && !errors.Is(err, cluster.ErrHung) {
						t.Error(err)
					}
					t.Logf("node %d: %v, %v", i, took, err)
				}
				for _, d := range disks {
					d.delay.Store(0)
				}
				time.Sleep(3 * time.Hour) // the hung calls have returned
				for _, n := range f.nodes {
					if n.Replica() != nil {
						t.Error("a closed node has got a replica")
					}
				}
			})
		})
	}
}
