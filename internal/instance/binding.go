package instance

import (
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
	"github.com/mortise-lock/mortise/transport"
)

// bind makes r, which may be nil, this instance's replica, and announces the new identity on all
// streams. Meanwhile it holds the mutex binding, so that it never announces a replica that has
// retired. If the instance has ended, bind does nothing and returns false.
func (n *Instance) bind(r *ownReplica, group uint64) bool {
	n.binding.Lock()
	defer n.binding.Unlock()
	if n.binding.ended {
		return false
	}
	if r != nil && r.retired {
		r = nil
	}
	if r != nil {
		n.unread.Store(nil)
	}
	n.replica.Store(r)
	if r != nil {
		n.diskWell(r)
	}
	n.identify(r, group)
	return true
}

// identify passes this instance's identity to the port. The caller must hold the mutex binding.
func (n *Instance) identify(r *ownReplica, group uint64) {
	id := transport.Self{Key: *n.key.Load(), Group: group, Addr: n.reach()}
	if r != nil {
		id.Raft = r.ID
	}
	n.port.Identify(id)
}

// retire ends a replica that can no longer work. If the replica's state machine is broken, the
// whole instance ends. Otherwise the instance continues without a vote.
func (n *Instance) retire(r *ownReplica, err error) {
	// isDisk is called before r.stop, because a call that hangs may return during r.stop.
	disk := n.isDisk(err)
	if disk {
		state := DiskFailed
		switch {
		case errors.Is(err, storage.ErrLost):
			state = DiskRemoved
		case errors.Is(err, raftlog.ErrHung):
			state = DiskHung
		}
		n.diskFailed(state, err)
	}
	r.stop()
	n.binding.Lock()
	r.retired = true
	mine := n.replica.CompareAndSwap(r, nil)
	if mine {
		n.sendRetired(r)
		n.identify(nil, r.Group)
	}
	n.binding.Unlock()
	n.leaderKnown() // the replica may have been the leader
	switch {
	case n.dir != nil && errors.Is(err, raftlog.ErrWentBack):
		n.cluster().WentBack(err)
	case errors.Is(err, raftlog.ErrBroken):
		n.fail(fmt.Errorf("mortise: the replicated state is broken, this node has stopped: %w", err))
	case mine:
		if n.dir == nil {
			n.cluster().Retired(r.ID)
		}
		log := n.logger.Error
		if disk {
			log = n.logger.Info // diskFailed has logged the error
		}
		log("this instance no longer votes; it goes on as a member", "why", err)
	}
}

// sendRetired informs the other replicas that this replica has retired, so that they need not wait
// for an election timeout. The frame is the last one under this raft ID.
func (n *Instance) sendRetired(r *ownReplica) {
	for _, v := range r.Others(n.instance()) {
		// If the frame is lost, the others wait for an election timeout.
		_ = n.port.Send(n.peer(v.Raft), transport.Frame{Retired: true})
	}
}

func (n *Instance) dismiss(r *ownReplica) {
	r.stop()
	defer n.leaderKnown()
	n.binding.Lock()
	defer n.binding.Unlock()
	r.retired = true
	if n.replica.CompareAndSwap(r, nil) {
		n.identify(nil, r.Group)
		n.logger.Info("this instance no longer votes; it goes on as a member", "why", "others have taken its place")
	}
}

// diskWell clears a disk error once the replica has stored a configuration that names the replica.
// The start of an empty replica does not prove that the disk works, because an empty replica fits
// on a full disk.
func (n *Instance) diskWell(r *ownReplica) {
	if n.replica.Load() != r || !r.IsNamed() {
		return
	}
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if n.disk.lasts != nil && n.disk.lasts.State != DiskRemoved {
		n.disk.lasts = nil
	}
}
