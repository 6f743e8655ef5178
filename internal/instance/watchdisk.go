package instance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

func (n *Instance) watchDisk() {
	if n.dir == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.spawn(func() {
		<-n.ending.shut
		cancel()
	})
	n.spawn(func() {
		reported, ill, looks := false, false, 0
		for timer := time.NewTimer(0); ; timer.Reset(diskLookEvery) {
			select {
			case <-timer.C:
				n.lookAtDisk(looks%diskWriteEvery == 0 || ill)
				looks++
			case <-n.disk.news:
			case <-ctx.Done():
				timer.Stop()
				return
			}
			fault := n.diskFault()
			ill = fault != nil && fault.State != DiskLow
			if fault == nil && !reported {
				continue
			}
			reported = fault != nil
			if n.reportDisk(ctx, fault) {
				n.yieldVote(fault)
			}
		}
	})
}

// reportDisk sends the state of this instance's disk to all voters. It reports whether the leader
// allows this instance to give up its vote.
func (n *Instance) reportDisk(ctx context.Context, fault *DiskFault) (may bool) {
	r := n.replica.Load()
	removed := fault != nil && fault.State == DiskRemoved && r != nil
	if removed && r.Role().Leading {
		_ = r.log.Transfer(ctx, 0) // if no other voter becomes leader, the next check tries again
	}
	ctx, cancel := context.WithTimeout(ctx, diskAskLimit)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, v := range n.cluster().Status().Voters {
		if v.Instance == n.instance() || v.Addr == "" {
			continue
		}
		all.Go(func() {
			q := &query.DiskReport{Fault: diskFaultOut(fault), Yield: removed && r.Votes()}
			// If the report is lost, it is sent again after the next check.
			a, _ := n.askable(v).ReportDisk(ctx, q)
			mu.Lock()
			defer mu.Unlock()
			may = may || a.GetMay()
		})
	}
	all.Wait()
	return may && removed
}

// yieldVote ends the replica of this instance. Its directory was removed, so it would acknowledge
// writes that are not durable.
func (n *Instance) yieldVote(fault *DiskFault) {
	if r := n.replica.Load(); r != nil {
		n.retire(r, fmt.Errorf("%w: %w: %s", raftlog.ErrStorage, storage.ErrLost, fault.Cause))
	}
}

func (n *Instance) askable(v cluster.Voter) query.ClusterClient {
	return query.NewClusterClient(n.port.To(v.Addr, v.Instance))
}

// faultyDisks returns the known instances with a disk fault, sorted by name. It includes this
// instance if its disk has a fault.
func (n *Instance) faultyDisks() []FaultyDisk {
	all := n.diskReports.all(n.env.clock.Now())
	if own := n.diskFault(); own != nil {
		all[n.instance()] = *own
	}
	if len(all) == 0 {
		return nil
	}
	c := n.cluster().Status()
	names := n.names(&c)
	var list []FaultyDisk
	for id, f := range all {
		list = append(list, FaultyDisk{Name: names.Name(id), Instance: id.String(), DiskFault: f})
	}
	slices.SortFunc(list, func(a, b FaultyDisk) int { return strings.Compare(a.Name+a.Instance, b.Name+b.Instance) })
	return list
}

// askDisks returns all disk faults that are known to the leader or to this instance.
func (n *Instance) askDisks(ctx context.Context, leader nodeid.ID) []FaultyDisk {
	mine := n.faultyDisks()
	if n.dir == nil || leader == n.instance() {
		return mine
	}
	voters := n.cluster().Status().Voters
	at := slices.IndexFunc(voters, func(v cluster.Voter) bool { return v.Instance == leader })
	if at < 0 {
		return mine
	}
	ctx, cancel := context.WithTimeout(ctx, diskAskLimit)
	defer cancel()
	// The list is empty if the leader does not answer.
	a, _ := n.askable(voters[at]).Disks(ctx, &query.DisksRequest{})
	list := a.GetDisks()
	for _, f := range list[:min(len(list), maxDiskReports)] {
		fault := diskFaultIn(f.Fault)
		if fault == nil || slices.ContainsFunc(mine, func(m FaultyDisk) bool { return m.Instance == f.Instance }) {
			continue
		}
		mine = append(mine, FaultyDisk{Name: shortText(f.Name), Instance: shortText(f.Instance), DiskFault: *fault})
	}
	return mine
}

type disks struct{ n *Instance }

func (d disks) ReportDisk(ctx context.Context, q *query.DiskReport) (*query.DiskVerdict, error) {
	n, now, from := d.n, d.n.env.clock.Now(), transport.AskerOf(ctx).Instance
	n.diskReports.keep(now, from, diskFaultIn(q.Fault))
	r := n.replica.Load()
	return &query.DiskVerdict{May: r != nil && q.Yield && r.mayYield(now, from)}, nil
}

func (d disks) Disks(context.Context, *query.DisksRequest) (*query.DisksAnswer, error) {
	a := &query.DisksAnswer{}
	for _, f := range d.n.faultyDisks() {
		a.Disks = append(a.Disks, &query.FaultyDisk{Name: f.Name, Instance: f.Instance,
			Fault: diskFaultOut(&f.DiskFault)})
	}
	return a, nil
}
