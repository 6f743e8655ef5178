package cluster

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// The kinds of messages of founding that the tests search for.
const (
	kindWhoAreYou = 1
	kindPrepare   = 7
	kindPrepared  = 8
	kindAnnounce  = 9
)

// prepareAsks decodes a Prepare: the number of the asked instance, the group, the raft ID, the
// term, and the number of the configuration.
func prepareAsks(question []byte) (fields [5]uint64) {
	b := question[2+nodeid.Size:]
	fields[0] = nodeidtest.Number(nodeid.ID(question[2 : 2+nodeid.Size]))
	for i := 1; i < len(fields); i++ {
		v, n := binary.Uvarint(b)
		fields[i], b = v, b[n:]
	}
	return fields
}

// prepareAnswer encodes the answer to a Prepare: running (0), ended (1) or declined (2).
func prepareAnswer(raft uint64, state byte) []byte {
	b := binary.AppendUvarint([]byte{1, kindPrepared}, raft)
	return append(b, state, 0)
}

// offered waits for the next raft ID that the leader offers to any instance. It returns the ID
// and how long it has waited.
func (n *node) offered(last uint64, within time.Duration) (uint64, time.Duration) {
	for began := time.Now(); time.Since(began) < within; time.Sleep(10 * time.Millisecond) {
		if r, ok := n.Report(); ok && r.Next.Kind == voters.Prepare && r.Next.ID != last {
			return r.Next.ID, time.Since(began)
		}
	}
	return 0, within
}

func TestWhatBecomesOfAPrepare(t *testing.T) {
	const silent, soon, same = time.Duration(0), 5 * time.Second, time.Duration(-1)
	listen := func(f *fleet, instance nodeid.ID, state func(raft uint64) []byte) {
		f.net.listen(addrOf(50)).serve(instance, func(_ Asker, q []byte) []byte {
			if q[1] != kindPrepare {
				return nil
			}
			return state(prepareAsks(q)[2])
		})
	}
	for _, c := range []struct {
		name  string
		there func(f *fleet)
		again time.Duration // time until the instance is asked for a replica with another ID; same: never
	}{
		{"silent", func(f *fleet) { f.net.muffle(addrOf(50), true) }, same},
		{"nothing listens", func(*fleet) {}, soon},
		{"a stranger", func(f *fleet) { f.net.alien[addrOf(50)] = true }, soon},
		{"another instance", func(f *fleet) {
			listen(f, nodeidtest.ID(78), func(raft uint64) []byte { return prepareAnswer(raft, 0) })
		}, soon},
		{"ended", func(f *fleet) {
			listen(f, nodeidtest.ID(77), func(raft uint64) []byte { return prepareAnswer(raft, 1) })
		}, soon},
		{"declined", func(f *fleet) {
			listen(f, nodeidtest.ID(77), func(raft uint64) []byte { return prepareAnswer(raft, 2) })
		}, soon},
		{"garbage", func(f *fleet) {
			listen(f, nodeidtest.ID(77), func(raft uint64) []byte { return []byte("garbage") })
		}, same},
		{"another ID", func(f *fleet) {
			listen(f, nodeidtest.ID(77), func(raft uint64) []byte { return prepareAnswer(raft+1, 0) })
		}, same},
		{"running", func(f *fleet) {
			listen(f, nodeidtest.ID(77), func(raft uint64) []byte { return prepareAnswer(raft, 0) })
		}, silent},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				defer f.stop()
				f.born(3)
				c.there(f)
				n, facts := f.alone(nodeidtest.ID(77), addrOf(50))
				f.net.tape()
				n.lead(4, facts)
				first, took := n.offered(0, time.Second)
				if first == 0 || took > 0 {
					t.Fatalf("offered %x after %v", first, took)
				}
				second, took := n.offered(first, 12*time.Second)
				asks := f.net.played(kindPrepare, addrOf(0), addrOf(50))
				if c.again == same {
					if second != 0 || len(asks) < 10 || len(asks) > 13 {
						t.Errorf("asked %d times in 12 s, and then by another ID %x", len(asks), second)
					}
					for _, a := range asks {
						if got := prepareAsks(a.question)[2]; got != first {
							t.Errorf("asked again by the ID %x, and not %x", got, first)
						}
					}
				} else if c.again == silent {
					steps := n.carriedOut()
					want := Voter{Raft: first, Instance: nodeidtest.ID(77), Addr: addrOf(50), Life: 1}
					if second != 0 || len(steps) == 0 || steps[0].step.Kind != voters.AddLearner ||
						steps[0].about != want || steps[0].term != 4 {
						t.Errorf("offered %x then, and carried out %+v", second, steps)
					}
				} else if second == 0 || took < c.again-time.Millisecond || took > c.again+askWithin+2*lead.Pause ||
					len(n.carriedOut()) > 0 {
					t.Errorf("offered another after %v, want %v; carried out %v", took, c.again, kinds(n.carriedOut()))
				}
				if len(asks) == 0 || prepareAsks(asks[0].question) != [5]uint64{77, f.oneGroup(), first, 4, 1} {
					t.Errorf("asked %d times, first % x", len(asks), asks[0].question)
				}
			})
		})
	}
}

// TestProbesTellADeadLifeFromASilentOne checks that an incarnation counts as ended if its address
// refuses connections, or if another instance proves its own ID there. In these cases the leader
// need not wait for the limit of silence.
func TestProbesTellADeadLifeFromASilentOne(t *testing.T) {
	for _, c := range []struct {
		name  string
		there func(f *fleet, of *node)
		over  bool
	}{
		{"gone", func(f *fleet, of *node) { of.stop() }, true},
		{"another instance", func(f *fleet, of *node) { of.port.serve(nodeidtest.ID(4711), nil) }, true},
		{"a stranger", func(f *fleet, of *node) { f.net.alien[of.cfg.Advertise] = true }, false},
		{"silent", func(f *fleet, of *node) { f.net.muffle(of.cfg.Advertise, true) }, false},
		{"it is there", func(*fleet, *node) {}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				defer f.stop()
				f.born(3)
				f.start(f.config(3, 3))
				f.raft(2 * time.Second)
				g := f.newGroup()
				facts := g.see()
				n := g.leader
				n.lead(1, facts)
				c.there(f, f.nodes[2])
				f.net.tape()
				began := time.Now()
				took := time.Duration(0)
				for took < 8*time.Second { // the instance has no stream and sends no message
					facts.Replicas = append([]voters.Replica(nil), facts.Replicas...)
					for i := range facts.Replicas {
						if r := &facts.Replicas[i]; r.Addr == addrOf(2) {
							r.Linked, r.Active, r.SilentFor = false, false, time.Since(began)
						}
					}
					n.lead(1, facts)
					if r, _ := n.Report(); r.Next.Kind == voters.Prepare {
						break
					}
					time.Sleep(20 * time.Millisecond)
					took = time.Since(began)
				}
				if c.over && took > 500*time.Millisecond || !c.over && (took < 5*time.Second || took > 6*time.Second) {
					t.Errorf("it is replaced after %v", took)
				}
				if probes := f.net.played(kindProbe, addrOf(0), ""); len(probes) == 0 || probes[0].to != addrOf(2) ||
					len(probes) > 60 {
					t.Errorf("%d probes", len(probes))
				}
			})
		})
	}
}

func TestAnswersToAnEarlierLeadAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		late := make(chan struct{})
		f.net.listen(addrOf(50)).serve(nodeidtest.ID(77), func(_ Asker, q []byte) []byte {
			if q[1] != kindPrepare {
				return nil
			}
			<-late
			return prepareAnswer(prepareAsks(q)[2], 0)
		})
		n, facts := f.alone(nodeidtest.ID(77), addrOf(50))
		n.lead(1, facts)
		first, _ := n.offered(0, time.Second)
		n.lead(2, facts)
		second, _ := n.offered(first, 100*time.Millisecond)
		time.Sleep(100 * time.Millisecond)
		close(late)
		time.Sleep(500 * time.Millisecond)
		steps := n.carriedOut()
		if first == 0 || second == 0 || len(steps) != 1 || steps[0].step.ID != second || steps[0].term != 2 {
			t.Errorf("offered %x and in the next term %x, and carried out %+v", first, second, steps)
		}
	})
}

// TestARetiredReplicaIsReplacedAtOnce checks that a replica is replaced when its instance
// reports that the replica has stopped, even if the stream to the instance goes on.
func TestARetiredReplicaIsReplacedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		f.start(f.config(3, 3))
		f.raft(2 * time.Second)
		g := f.newGroup()
		g.run(time.Second)
		over := f.nodes[1].place()
		f.nodes[1].Retired(over.Raft + 1) // the ID of another replica
		g.run(100 * time.Millisecond)
		if n := f.nodes[1].Status().Members; !slices.ContainsFunc(n,
			func(m Member) bool { return m.Self && m.Raft == over.Raft }) {
			t.Errorf("it gives up its raft ID because of another: %+v", n)
		}
		f.nodes[1].Retired(over.Raft)
		g.leader.PeerLost(over.Instance) // the instance has reported this in the stream's last frame
		g.run(2 * time.Second)
		steps := g.leader.carriedOut()
		if len(steps) < 2 || len(steps[1].step.Remove) != 1 || steps[1].step.Remove[0] != over.Raft {
			t.Fatalf("carried out %+v", steps)
		}
		if strings.Contains(f.nodes[0].calls()+f.nodes[2].calls(), "removed") {
			t.Error("another replica was removed")
		}
	})
}
